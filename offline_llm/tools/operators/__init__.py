"""The operators of evolution, as jobs of the offline generator."""
