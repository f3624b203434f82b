"""A sandbox of a snapshot, without a pool."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sandboxes.core.body import Snapshot
from sandboxes.core.sandbox import Sandbox, closing
from sandboxes.lending.leases import backend


@asynccontextmanager
async def fork(snapshot: Snapshot) -> AsyncIterator[Sandbox]:
    """As `lease` with the snapshot's template, the workspace holding the snapshot's files.

    What a fork changes is seen by no other fork, and bounded by the disk limit.
    """
    async with closing(await backend().create(snapshot.template, snapshot)) as sandbox:
        yield sandbox
