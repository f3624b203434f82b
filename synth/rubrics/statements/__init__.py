"""What an assistant states to its user, statement by statement, and what code can tell of it."""
