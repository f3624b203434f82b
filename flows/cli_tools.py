"""Commands about tools, a module each: import, and list, show of the catalogue."""

from cyclopts import App

from flows.cli_catalogue import list_, show
from flows.cli_export_mcp import export_mcp
from flows.cli_import import import_


def register(app: App) -> None:
    tools = App(name="tools", help="Import tools from MCP servers; list and show the catalogue.")
    tools.command(import_, name="import")
    tools.command(list_, name="list")
    tools.command(show)
    tools.command(export_mcp, name="export-mcp")
    app.command(tools)
