"""Domains: their files, their tools by name, the taxonomy, and calls on their state."""
