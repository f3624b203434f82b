"""Ideas of tools: each file writes one family of tools for any domain."""
