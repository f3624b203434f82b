"""A proposed tool: the form in which a generator writes it, and its examination."""
