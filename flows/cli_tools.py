"""Commands about tools and where they run: tools import, list, show; sandbox doctor."""

import asyncio
import json
import sys
from typing import Annotated, Literal

from cyclopts import App, Parameter

from flows.settings import dataset_path, open_dataset
from records.errors import ConfigError
from records.query import run_sql

Dataset = Annotated[str | None, Parameter(name="--dataset", alias="-d")]
Json = Annotated[bool, Parameter(name="--json", negative="")]


def register(app: App) -> None:
    tools = App(name="tools", help="Import tools from MCP servers; list and show the catalogue.")
    tools.command(import_, name="import")
    tools.command(list_, name="list")
    tools.command(show)
    app.command(tools)
    sandbox = App(name="sandbox", help="What runs foreign code here.")
    sandbox.command(doctor)
    app.command(sandbox)


def import_(
    *, server: Annotated[list[str], Parameter(negative="")], dataset: Dataset = None
) -> None:
    """Start MCP servers in a sandbox, ask them for their tools, and add those to the dataset.

    Parameters
    ----------
    server
        A built-in server by name, the path of a server definition (.yaml), or a quoted command
        line such as "mcp-server-time --local-timezone UTC". May be given several times.
    dataset
        Folder of the dataset; default $SYNTH_DATASET, else data/demo. Made if it is missing.
    """
    from synth.importing import import_servers

    for name, (kept, left_out) in asyncio.run(
        import_servers(server, dataset_path(dataset))
    ).items():
        print(f"{name}: {kept} tools added, {left_out} left out", file=sys.stderr)  # noqa: T201


def list_(
    *,
    source: Literal["mcp", "synthetic"] | None = None,
    dataset: Dataset = None,
    json_: Json = False,
) -> None:
    """List the tools of the dataset: name, where from, split, why left out, description.

    Parameters
    ----------
    source
        Only tools of real MCP servers, or only synthetic ones.
    dataset
        Folder of the dataset; default $SYNTH_DATASET, else data/demo.
    json_
        Print a JSON list of objects.
    """
    from flows.cli_data import print_result

    only = f"where t.source = '{source}'" if source else ""
    query = f"""
        select t.name, coalesce(t.server, d.name) as from_, t.split, t.drop_reason, t.description
        from tools t left join domains d using (domain_id) {only} order by 2, 1
    """
    print_result(run_sql(open_dataset(dataset), query), json_=json_)


def show(name: str, *, dataset: Dataset = None) -> None:
    """Print everything the dataset holds about a tool, as JSON.

    Parameters
    ----------
    name
        The tool's name; tools of several sources may share one, and all are shown.
    dataset
        Folder of the dataset; default $SYNTH_DATASET, else data/demo.
    """
    store = open_dataset(dataset)
    found = [row for row in store.rows("tools") if row["name"] == name]
    if not found:
        raise ConfigError(f"no tool {name!r} in {store.root}; `synth tools list` names them all")
    print(json.dumps(found, indent=2, ensure_ascii=False))  # noqa: T201


def doctor(*, json_: Json = False) -> None:
    """Say what the sandbox of this machine can enforce and what it cannot.

    Parameters
    ----------
    json_
        Print a JSON list of objects.
    """
    from flows.cli_data import print_result
    from records.query import Result
    from sandboxes.doctor import Enforcement, enforceable

    rows = [tuple(found) for found in enforceable()]
    print_result(Result(list(Enforcement._fields), rows), json_=json_)
