"""Words and trees of expressions: what the parser reads, and what it makes of it."""
