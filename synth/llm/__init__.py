"""Access to language models: roles, one client, cache, limits, budget, ledger, probe."""
