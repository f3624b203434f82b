"""From rows to tokens: chat template, tokenizer, conversations, packed batches."""
