"""Reinforcement learning on environments with verifiable rewards."""
