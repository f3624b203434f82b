"""From rewarded samples to a step of the weights: baselines, objectives, rows, measures, steps."""
