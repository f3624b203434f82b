"""Mutants of a tool: what may stand in the place of each part, and what is proved equal."""
