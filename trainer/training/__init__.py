"""Training runs: settings, one step, the loop, checkpoints, metrics and curves."""
