"""Our own connection to a double in the test's own event loop, where no Pod runs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from sandboxes.kubernetes.api import connection as connections
from sandboxes.kubernetes.api.connection import Connection
from sandboxes.kubernetes.names import OWNER, Folders, lease_name
from sandboxes.kubernetes.owners import Owner
from tests.kubernetes.double.kubeconfig import write_kubeconfig
from tests.kubernetes.doubled import Asking, doubled

FOLDERS = Folders("default")


@asynccontextmanager
async def connected(folder: Path, **settings: Any) -> AsyncIterator[tuple[Asking, Connection]]:
    async with doubled(**settings) as ask:
        write_kubeconfig(folder / "kubeconfig", ask.url)
        made = await connections.opened(
            kubeconfig=str(folder / "kubeconfig"), context=None, creations_per_s=1000, burst=1000
        )
        try:
            yield ask, made
        finally:
            await made.close()


def owner(connection: Connection, name: str) -> Owner:
    metadata = {"name": lease_name(name), "uid": f"uid-{name}", "labels": {OWNER: name}}
    return Owner(connection, FOLDERS, {"metadata": metadata})
