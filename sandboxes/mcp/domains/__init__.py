"""Domains to whoever speaks MCP: served to others, and run in this process as a part of a joined
server."""
