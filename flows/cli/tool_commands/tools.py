"""Commands about tools, a module each."""

from cyclopts import App

from flows.cli.tool_commands import catalogue as cli_catalogue
from flows.cli.tool_commands.evolve import evolve
from flows.cli.tool_commands.export_mcp import export_mcp
from flows.cli.tool_commands.imports import import_


def register(app: App) -> None:
    tools = App(name="tools", help="Import or evolve tools; list and show the catalogue.")
    tools.command(import_, name="import")
    tools.command(evolve)
    cli_catalogue.register(tools)
    tools.command(export_mcp, name="export-mcp")
    app.command(tools)
