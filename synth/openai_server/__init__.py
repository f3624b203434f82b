"""The server side of OpenAI's protocol, without a model."""
