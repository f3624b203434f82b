"""Texts compared with one another and with evaluations: near-duplicates, shared runs of words."""
