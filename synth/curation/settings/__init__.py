"""What curation is told."""
