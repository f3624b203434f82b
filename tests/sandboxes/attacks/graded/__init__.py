"""Attempts on graders: forged results of tests, and sandboxes that are lent again."""
