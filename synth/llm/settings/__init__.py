"""Which model plays which role, where it is reached, and what the endpoint there can do."""
