"""A small MCP server written with the official package, run in a sandbox by tests."""

from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

server = MCPServer("library")
READS = ToolAnnotations(read_only_hint=True)


@server.tool(annotations=READS)
def find_book(title: str, year: int | None = None) -> str:
    """Find a book of the library by its title. Returns where it stands."""
    return f"{title} {year}"


@server.tool(annotations=READS)
def days_left(title: str) -> str:
    """Tell when a book must be back. Returns the days that are left."""
    return title


if __name__ == "__main__":
    server.run("stdio")
