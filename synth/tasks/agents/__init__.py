"""Agents and personas: system prompts over toolsets, simulated users, near-duplicates."""
