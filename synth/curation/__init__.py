"""Curation: what is kept of graded trajectories, which of their messages carry loss, and why."""
