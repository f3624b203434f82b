"""Text rewritten for pretraining: knowledge in styles and perspectives, mathematics as notes."""
