"""Tasks on code: worlds, tasks with planted bugs, the words of their issues, grading by tests."""
