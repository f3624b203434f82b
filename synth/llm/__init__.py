"""Access to language models: roles, one client, cache, budget, ledger."""
