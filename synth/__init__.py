"""What a language model writes, plays or judges, and the checks that keep it honest."""
