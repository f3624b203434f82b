"""Sampling: a cache, batches, constrained decoding, policies that play an agent."""
