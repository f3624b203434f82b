"""What is exact in a part and wrong in its rewrite: the one list of hard reasons."""
