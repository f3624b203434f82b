"""Failures planted in stored episodes that passed: what the judge is tried with."""
