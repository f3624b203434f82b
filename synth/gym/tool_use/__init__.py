"""Tasks of a dataset as an environment: simulated users, executed tools, rewards by code alone."""
