"""Attempts to win rights from the kernel, or more of the machine than the limits allow."""
