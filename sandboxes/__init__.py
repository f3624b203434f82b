"""Where a call really runs: sandboxes and live MCP sessions inside them."""
