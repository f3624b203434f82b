"""Endings of conversations written by other minds: honest work that must be accepted, faulty work
that must not be."""
