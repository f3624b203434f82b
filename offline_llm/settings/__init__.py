"""What the offline model gets wrong on purpose and how often, and its settings."""
