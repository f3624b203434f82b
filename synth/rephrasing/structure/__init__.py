"""How a text is cut: blocks, sentences, parts of a document."""
