"""Environments with verifiable rewards, for reinforcement learning: by name, from files of users,
by difficulty, by what they cover."""
