"""MCP servers: their definitions, live sessions in sandboxes, the network they may reach."""
