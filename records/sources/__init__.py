"""Rows and texts of others: where their files and data sets are found, and how each is opened."""
