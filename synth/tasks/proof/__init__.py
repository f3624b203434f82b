"""Whether a task can be done: search, replay of the reference plan, proofs that it cannot."""
