"""What an object may be: names, kinds, defaults, schemas, and what an update may change."""
