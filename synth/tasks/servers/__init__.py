"""Tasks for real MCP servers: goals found by trying, drafts, and their proof by execution."""
