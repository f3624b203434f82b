"""Validation of tools: seeded fuzzing, mutants, and what no call can tell apart."""
