"""Removes what killed owners left behind. Their processes are dead already (they die with the
owner); their control groups and snapshots are found by the owner's name. Nothing of a living
owner, and nothing of another process namespace, is ever touched."""

import shutil
import time
from functools import cache
from typing import NamedTuple

from sandboxes.core.owners import owner_is_dead, root_folder
from sandboxes.local import cgroups

PATIENCE_S = 2.0
"""For groups whose last processes are dying; what is still busy then is left to the next time."""


class Reaped(NamedTuple):
    groups: int
    """Control group folders removed."""
    snapshots: int
    """Folders of dead owners removed."""
    busy: int
    """Groups that could not be removed yet."""


def reap() -> Reaped:
    """Remove what owners that no longer run left on this machine. Safe beside anything."""
    orphans = cgroups.orphans()
    left, deadline = orphans, time.monotonic() + PATIENCE_S
    while left := [folder for folder in left if not cgroups.ended(folder)]:
        if time.monotonic() > deadline:
            break
        time.sleep(0.01)
    gone = 0
    for folder in root_folder().iterdir():
        if owner_is_dead(folder.name):
            shutil.rmtree(folder, ignore_errors=True)
            gone += not folder.exists()
    return Reaped(len(orphans) - len(left), gone, len(left))


@cache
def reap_once() -> Reaped:
    """`reap`, the first time that this process starts a sandbox."""
    return reap()
