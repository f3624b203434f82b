"""Reading committed rows: SQL, rows by a key, canonical bytes. Nothing here writes."""
