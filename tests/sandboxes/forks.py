"""A sandbox of a snapshot, without a pool."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sandboxes.core.sandbox import Sandbox
from sandboxes.local.backend import closing, start
from sandboxes.local.snapshots import WorkspaceSnapshot


@asynccontextmanager
async def fork(snapshot: WorkspaceSnapshot) -> AsyncIterator[Sandbox]:
    """As `lease` with the snapshot's template, the workspace holding the snapshot's files.

    What a fork changes is seen by no other fork, and bounded by the disk limit.
    """
    async with closing(await start(snapshot.template, snapshot)) as sandbox:
        yield sandbox
