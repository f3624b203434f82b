"""Attempts on the agent, its stream, and the commands that it runs later."""
