"""What leaves a dataset: exports and their card, the report, one trajectory to be read."""
