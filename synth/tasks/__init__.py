"""Tasks: thought of, proved by execution, and only then put into words."""
