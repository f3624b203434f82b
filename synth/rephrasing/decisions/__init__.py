"""Rewrites measured, judged and decided about, from what the dataset holds of them."""
