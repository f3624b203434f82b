"""Removes what killed owners left behind. Their processes are dead already (they die with the
owner); their control groups and folders are found by the owner's name. Nothing of a living owner,
of a sandbox that lingers for another one, or of another process namespace is ever touched."""

import contextlib
import time
from functools import cache
from typing import NamedTuple

from records.errors import TransientError
from sandboxes.core import trees
from sandboxes.core.owners import PREFIX, owner_is_dead, root_folder
from sandboxes.local import cgroups
from sandboxes.local.body import DESCRIPTION, described

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
    kept = lingering()
    orphans = [
        folder for folder in cgroups.orphans() if folder.name.removeprefix(f"{PREFIX}.") not in kept
    ]
    left, deadline = orphans, time.monotonic() + PATIENCE_S
    while left := [folder for folder in left if not cgroups.ended(folder)]:
        if time.monotonic() > deadline:
            break
        time.sleep(0.01)
    gone = 0
    for folder in root_folder().iterdir():
        owner = folder.name
        if owner_is_dead(owner) and not any(name.startswith(f"{owner}.") for name in kept):
            trees.remove(folder)
            gone += not folder.exists()
    return Reaped(len(orphans) - len(left), gone, len(left))


def lingering() -> set[str]:
    """Names of the sandboxes that live on although their owners do not."""
    found = set()
    for path in root_folder().glob(f"*/sandbox-*/{DESCRIPTION}"):
        name = f"{path.parent.parent.name}.{path.parent.name.partition('-')[2]}"
        with contextlib.suppress(TransientError):
            body, template = described(name)
            if template.linger_s and not body.ended():
                found.add(name)
    return found


@cache
def reap_once() -> Reaped:
    """`reap`, the first time that this process starts a sandbox."""
    return reap()
