"""Reinforcement learning: what is learnt from played episodes, and how they are played."""
