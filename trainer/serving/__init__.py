"""An exported model behind OpenAI's protocol: requests read, answers drawn together, sent back."""
