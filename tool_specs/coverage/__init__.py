"""What many tools cover: skeletons, near-duplicates, a map by their words."""
