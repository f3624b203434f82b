"""Commands about tools, a module each."""

from cyclopts import App

from flows import cli_catalogue
from flows.cli_evolve import evolve
from flows.cli_export_mcp import export_mcp
from flows.cli_import import import_


def register(app: App) -> None:
    tools = App(name="tools", help="Import or evolve tools; list and show the catalogue.")
    tools.command(import_, name="import")
    tools.command(evolve)
    cli_catalogue.register(tools)
    tools.command(export_mcp, name="export-mcp")
    app.command(tools)
