"""Faithfulness: answers from given material, sentence by sentence, by code first, then a judge."""
