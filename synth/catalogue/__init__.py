"""The tools there are: import, evolution, tools that a model plays, lists and cards of them."""
