"""What the flows that train have in common: training and scoring as tasks, what the UI shows."""
