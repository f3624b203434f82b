"""What every environment has: its tasks, an episode of one, a reward with its parts."""
