"""What learns from the data. Imports torch, which no other package does."""
