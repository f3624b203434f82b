"""The way to an API server: requests, watches and streams of frames. Knows nothing of sandboxes."""
