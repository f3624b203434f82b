"""What other programs read: a module for each family of formats, and the registry of all."""
