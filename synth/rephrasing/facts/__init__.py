"""What of a text is exact: numbers, units, dates, names, quotations, and their marks."""
