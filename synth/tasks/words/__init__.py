"""The words of a task: who brings it and why, what is said at once, and whether readers agree."""
