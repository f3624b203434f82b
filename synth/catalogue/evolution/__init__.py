"""Evolution of synthetic tools: quotas choose, a generator writes, workers validate."""
