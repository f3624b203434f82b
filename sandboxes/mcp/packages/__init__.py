"""Packages that servers run from: which ones a command asks for, and where they are kept."""
