"""What dead owners left on the cluster, and its removal by living ones.

Every owner looks at the Leases of all. One that it finds dead (`owners`) it declares dead first, so
that none is ever removed that lives: from then on that owner's own renewal tells it to give up. Its
pools go at once, its sandboxes when they have lingered as long as their template says, its Lease
last, and with it whatever still refers to it. Two owners may do so at the same time. Claims and
plain Pods are both looked for, whichever of them this owner makes: agent-sandbox may have come to
the cluster, or gone out of use, since the dead one had its sandboxes.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterator
from typing import NamedTuple, Protocol

from records.errors import ConfigError, SynthError
from sandboxes.kubernetes.api.answers import CONFLICT, NOT_FOUND, ApiError
from sandboxes.kubernetes.api.connection import ApiObject, Connection
from sandboxes.kubernetes.names import (
    LINGER,
    SANDBOX,
    Folders,
    annotation,
    lease_name,
    seconds_in,
)
from sandboxes.kubernetes.names import selecting as selected
from sandboxes.kubernetes.owners import OtherOwners, Owner, version
from sandboxes.kubernetes.states import PodState, controller_of, pod_state

log = logging.getLogger(__name__)

AT_ONCE = 64
"""Deletions that are asked for at the same time."""


class ReapedOwners(NamedTuple):
    owners: int
    sandboxes: int


class Reaper(Protocol):
    """Who reaps."""

    connection: Connection
    folders: Folders
    owner: Owner
    others: OtherOwners


async def reaping(who: Reaper, every_s: float) -> None:
    """Until it is cancelled."""
    while True:
        try:
            reaped = await reap(who)
            if any(reaped):
                log.info("removed of dead owners: %s", reaped)
        except SynthError as error:
            log.info("dead owners could not be looked for: %s", error)
        await asyncio.sleep(every_s)


async def reap(who: Reaper) -> ReapedOwners:
    """One round. What goes wrong with one owner costs the others nothing."""
    gone = sandboxes = 0
    for owner, lease in (await who.others.look()).items():
        if owner == who.owner.name or not who.others.dead(owner, lease):
            continue
        try:
            reaped = await reap_one(who, owner, lease)
        except SynthError as error:
            log.warning("dead owner %s could not be removed: %s", owner, error)
            continue
        gone, sandboxes = gone + reaped.owners, sandboxes + reaped.sandboxes
    who.others.looked_on()
    return ReapedOwners(gone, sandboxes)


async def reap_one(who: Reaper, owner: str, lease: ApiObject) -> ReapedOwners:
    if not await who.others.declare_dead(owner, lease):
        return ReapedOwners(0, 0)
    await remove_pools(who.connection, who.folders, owner)
    removed, left = await remove_sandboxes(who, owner)
    if left:
        return ReapedOwners(0, removed)
    path = f"{who.folders.leases}/{lease_name(owner)}"
    gone = await who.connection.delete(path, preconditions={"uid": lease["metadata"]["uid"]})
    return ReapedOwners(int(gone), removed)


async def remove_pools(connection: Connection, folders: Folders, owner: str) -> None:
    """Whatever of an owner is no sandbox that somebody asked for: pools, and plain Pods that nobody
    was lent."""
    mine = selected(owner=owner)
    for folder in (folders.warm_pools, folders.templates):
        with where_known():
            await connection.ask("DELETE", folder, mine)
    query = {"labelSelector": f"{mine['labelSelector']},!{SANDBOX}"}
    unlent = [
        ListedObject(item["metadata"]["name"], version(item))
        async for item in present(connection, folders.pods, query)
        if controller_of(item) is None  # those of Sandboxes go with their pools and claims
    ]
    await remove_all(connection, folders.pods, unlent)


async def remove_sandboxes(who: Reaper, owner: str) -> tuple[int, int]:
    """How many were removed, and how many may still be adopted."""
    removed, left = await remove_from(who, who.folders.pods, owner)
    with where_known():
        more = await remove_from(who, who.folders.claims, owner)
        removed, left = removed + more[0], left + more[1]
    return removed, left


async def remove_from(who: Reaper, folder: str, owner: str) -> tuple[int, int]:
    silent_s, left = who.others.silent_s(owner), 0
    over: list[ListedObject] = []
    async for item in present(who.connection, folder, selected(owner=owner, sandbox="")):
        if silent_s < seconds_in(annotation(item, LINGER)):
            left += 1
        else:
            over.append(ListedObject(item["metadata"]["name"], version(item)))
    removed = await remove_all(who.connection, folder, over)
    return removed, left + len(over) - removed


class ListedObject(NamedTuple):
    """An object as it was listed: of thousands nothing else is kept."""

    name: str
    version: dict[str, str]


async def present(
    connection: Connection, folder: str, query: dict[str, str]
) -> AsyncIterator[ApiObject]:
    """What is there and not on its end."""
    async for item, _ in connection.listed(folder, query):
        if item and "deletionTimestamp" not in item["metadata"]:
            yield item


@contextlib.contextmanager
def where_known() -> Iterator[None]:
    """Around what concerns agent-sandbox: no error where the API does not have its kinds, or we
    have no right to them, as where a role was written for plain Pods alone."""
    try:
        yield
    except ApiError as error:
        if error.code != NOT_FOUND:
            raise
    except ConfigError as error:
        log.info("claims of dead owners cannot be looked for: %s", error)


async def remove_all(connection: Connection, folder: str, found: list[ListedObject]) -> int:
    """How many of these were removed."""
    done = 0
    for batch in batched(found, AT_ONCE):
        done += sum(await asyncio.gather(*(removes(connection, folder, each) for each in batch)))
    return done


async def removes(connection: Connection, folder: str, seen: ListedObject) -> bool:
    """Remove an object as it was listed. False where somebody has changed it since, as who adopts
    it does: the next round looks again."""
    try:
        await connection.delete(
            f"{folder}/{seen.name}", preconditions=seen.version, propagationPolicy="Background"
        )
    except ApiError as error:
        if error.code != CONFLICT:
            raise
        return False
    return True


def batched(items: list[ListedObject], size: int) -> Iterator[list[ListedObject]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


async def states_of(connection: Connection, folders: Folders, owner: str) -> dict[str, PodState]:
    """The Pods of an owner (of all with an empty name), by their keys."""
    found = connection.listed(folders.pods, selected(owner=owner))
    return dict([pod_state(item) async for item, _ in found if item])


def key_of(item: ApiObject) -> str:
    """Of the Pod in which the sandbox of a claim is, or that it is itself."""
    sandbox = ((item.get("status") or {}).get("sandbox") or {}).get("name")
    return sandbox or item["metadata"]["name"]
