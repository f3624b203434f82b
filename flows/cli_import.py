"""The command `synth tools import`."""

import asyncio
import sys
from typing import Annotated

from cyclopts import Parameter

from flows.settings import dataset_path

Dataset = Annotated[str | None, Parameter(name="--dataset", alias="-d")]


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
