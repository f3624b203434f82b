"""Servers that are not ours, each in an environment of its own, and what they make of requests."""
