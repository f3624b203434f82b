"""Every prompt, as a Markdown template; its digest is its version."""
