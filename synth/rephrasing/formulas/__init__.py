"""Formulas as trees of a grammar of ours; nothing of a model's text is ever executed."""
