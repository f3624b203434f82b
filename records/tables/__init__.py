"""The tables: Arrow schemas, conversion of rows, splits. No file is touched here."""
