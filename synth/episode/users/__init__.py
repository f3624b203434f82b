"""The simulated user, and what code finds wrong with its turns."""
