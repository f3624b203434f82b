"""Where texts come from: files, tables, data sets, CPython's reference, mathematics."""
