"""Perturbed negatives: accepted episodes edited so that one criterion must fail, and what confirms
them."""
