"""Grading: verdicts of code and judge, the judge's own error rates, curation, people's labels."""
