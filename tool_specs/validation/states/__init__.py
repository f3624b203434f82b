"""States and arguments made for the purpose: random, on edges, and solved for one mutant."""
