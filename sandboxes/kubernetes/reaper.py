"""What dead owners left on the cluster, and its removal by living ones.

Every owner looks at the Leases of all. One that it finds dead (`owners`) it declares dead first, so
that none is ever removed that lives: from then on that owner's own renewal tells it to give up. Its
pools go at once, its sandboxes when they are over or have lingered as long as their template says,
its Lease last, and with it whatever still refers to it. Two owners may do so at the same time.
"""

import asyncio
import logging
from typing import NamedTuple, Protocol

from records.errors import SynthError
from sandboxes.kubernetes.api.connection import Connection, Json
from sandboxes.kubernetes.cluster import Cluster
from sandboxes.kubernetes.names import LINGER, SANDBOX, Folders, annotation, label, lease_name
from sandboxes.kubernetes.names import selecting as selected
from sandboxes.kubernetes.owners import Others, Owner
from sandboxes.kubernetes.states import PodState, pod_state

log = logging.getLogger(__name__)


class Reaped(NamedTuple):
    owners: int
    sandboxes: int


class Reaper(Protocol):
    """Who reaps."""

    connection: Connection
    folders: Folders
    cluster: Cluster
    owner: Owner
    others: Others


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


async def reap(who: Reaper) -> Reaped:
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
    return Reaped(gone, sandboxes)


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
    """How many were removed, and how many may still be adopted."""
    removed = left = 0
    pods = await states_of(who.connection, who.folders, owner)
    folder = who.folders.claims if who.cluster.claims else who.folders.pods
    async for item, _ in who.connection.listed(folder, selected(owner=owner, sandbox="")):
        if not item or "deletionTimestamp" in item["metadata"]:
            continue
        if lingers(item, pods, who.others.silent_s(owner)):
            left += 1
        else:
            removed += await who.connection.delete(
                f"{folder}/{item['metadata']['name']}",
                preconditions={"uid": item["metadata"]["uid"]},
                propagationPolicy="Background",
            )
    return removed, left


async def states_of(connection: Connection, folders: Folders, owner: str) -> dict[str, PodState]:
    """The Pods of an owner (of all with an empty name), by their keys."""
    found = connection.listed(folders.pods, selected(owner=owner))
    return dict([pod_state(item) async for item, _ in found if item])


def lingers(item: Json, pods: dict[str, PodState], silent_s: float) -> bool:
    """Whether a dead owner's sandbox may still be adopted."""
    state = pods.get(key_of(item))
    if state is None or state.over is not None or not label(item, SANDBOX):
        return False
    return silent_s < float(annotation(item, LINGER) or 0)


def key_of(item: Json) -> str:
    """Of the Pod in which the sandbox of a claim is, or that it is itself."""
    sandbox = ((item.get("status") or {}).get("sandbox") or {}).get("name")
    return sandbox or item["metadata"]["name"]
