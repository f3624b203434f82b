"""Evolved tools: a generator model writes them, the proof decides, the dataset keeps."""
