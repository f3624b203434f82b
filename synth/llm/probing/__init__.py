"""Before a run: what an endpoint and its models can do."""
