"""Larger seeds: a domain's seed grown to a size, by the domain's own rules and seed rows."""
