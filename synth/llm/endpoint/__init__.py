"""One endpoint: the connection to it, and how many requests it is sent at once."""
