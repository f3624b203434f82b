"""Training runs: settings, loss, one step, the loop, checkpoints, metrics and curves."""
