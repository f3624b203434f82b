"""Environments with verifiable rewards, for reinforcement learning."""
