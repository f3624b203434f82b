"""What leaves a dataset for other programs: exported folders, their card, the way to the Hub."""
