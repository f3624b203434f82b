"""The offline rewriter: a phrase table, clauses turned round, and the form of each style."""
