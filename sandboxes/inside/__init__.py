"""Programs that run inside a sandbox, each a file of its own that imports nothing of ours."""
