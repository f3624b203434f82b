"""Endings of conversations by other minds: whether honest work is accepted and faulty work is not."""
