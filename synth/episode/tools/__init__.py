"""How a call is executed: interpreter, MCP server, code, simulator, cassette; fault injection."""
