"""What is written down: record schemas, the dataset store, seeds and errors.

Every other package imports this one; it imports none of them.
"""
