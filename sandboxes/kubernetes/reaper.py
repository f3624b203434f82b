"""What dead owners left on the cluster, and its removal by living ones.

Every owner looks at the Leases of all. One that it finds dead (`owners`) it declares dead first, so
that none is ever removed that lives: from then on that owner's own renewal tells it to give up. Its
pools go at once, its sandboxes when they have lingered as long as their template says, its Lease
last, and with it whatever still refers to it. Two owners may do so at the same time.
"""

import asyncio
import logging
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from records.errors import SynthError
from sandboxes.kubernetes.api.answers import CONFLICT, ApiError
from sandboxes.kubernetes.api.connection import ApiObject, Connection
from sandboxes.kubernetes.cluster import Cluster
from sandboxes.kubernetes.names import (
    LINGER,
    SANDBOX,
    Folders,
    annotation,
    lease_name,
    seconds_in,
)
from sandboxes.kubernetes.names import selecting as selected
from sandboxes.kubernetes.owners import OtherOwners, Owner
from sandboxes.kubernetes.states import PodState, pod_state

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
    cluster: Cluster
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
    """One round."""
    gone = sandboxes = 0
    for owner, lease in (await who.others.look()).items():
        if owner == who.owner.name or not who.others.dead(owner, lease):
            continue
        if not await who.others.declare_dead(owner, lease):
            continue
        await remove_pools(who.connection, who.folders, owner, who.cluster)
        removed, left = await remove_sandboxes(who, owner)
        sandboxes += removed
        if not left:
            path = f"{who.folders.leases}/{lease_name(owner)}"
            uid = {"uid": lease["metadata"]["uid"]}
            gone += await who.connection.delete(path, preconditions=uid)
    who.others.looked_on()
    return ReapedOwners(gone, sandboxes)


async def remove_pools(
    connection: Connection, folders: Folders, owner: str, cluster: Cluster
) -> None:
    """Whatever of an owner is no sandbox that somebody asked for."""
    mine = selected(owner=owner)
    if cluster.claims:
        for folder in (folders.warm_pools, folders.templates):
            await connection.ask("DELETE", folder, mine)
        return
    unclaimed = {"labelSelector": f"{mine['labelSelector']},!{SANDBOX}"}
    await connection.ask("DELETE", folders.pods, unclaimed)


async def remove_sandboxes(who: Reaper, owner: str) -> tuple[int, int]:
    """How many were removed, and how many may still be adopted. An owner may have had plain Pods
    where others have claims."""
    folders = [who.folders.pods]
    if who.cluster.claims:
        folders.append(who.folders.claims)
    silent_s, removed, left = who.others.silent_s(owner), 0, 0
    for folder in folders:
        over: list[ApiObject] = []
        async for item, _ in who.connection.listed(folder, selected(owner=owner, sandbox="")):
            if not item or "deletionTimestamp" in item["metadata"]:
                continue
            if silent_s < seconds_in(annotation(item, LINGER)):
                left += 1
            else:
                over.append(item["metadata"])
        done = 0
        for batch in batched(over, AT_ONCE):
            done += sum(await asyncio.gather(*(removes(who, folder, each) for each in batch)))
        removed, left = removed + done, left + len(over) - done
    return removed, left


async def removes(who: Reaper, folder: str, metadata: ApiObject) -> bool:
    """Remove a sandbox as it was listed. False where somebody has changed it since, as who adopts
    it does: the next round looks again."""
    version = {name: metadata[name] for name in ("uid", "resourceVersion")}
    try:
        await who.connection.delete(
            f"{folder}/{metadata['name']}", preconditions=version, propagationPolicy="Background"
        )
    except ApiError as error:
        if error.code != CONFLICT:
            raise
        return False
    return True


def batched(items: list[ApiObject], size: int) -> Iterator[list[ApiObject]]:
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
