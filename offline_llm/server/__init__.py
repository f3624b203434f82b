"""OpenAI's protocol as an ASGI application, which is given whoever answers as a function."""
