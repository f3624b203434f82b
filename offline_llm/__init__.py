"""The offline model: OpenAI's protocol answered by rule, for runs without any model."""
