"""Owners of sandboxes on a cluster: each is a Lease that its process renews.

Everything that an owner makes refers to its Lease, so that the cluster removes it all once the
Lease is gone. An owner is dead when its process is known to have ended (those of this machine), or
when this process has seen its Lease unchanged for as long as `owner_dead_s`: clocks of different
machines are never compared. Who finds one dead writes that into the Lease, which fails if it was
renewed meanwhile; an owner that finds it there, back from a long pause, gives itself up.
"""

import asyncio
import logging
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from records.errors import SynthError, TransientError
from sandboxes.core.body import InfrastructureError
from sandboxes.core.owners import owner_is_dead, owner_name
from sandboxes.kubernetes.api.answers import CONFLICT, ApiError
from sandboxes.kubernetes.api.connection import ApiObject, Connection
from sandboxes.kubernetes.names import (
    DEAD,
    HOLDER,
    MANAGED,
    OWNER,
    Folders,
    annotation,
    label,
    lease_name,
)

log = logging.getLogger(__name__)

BOOT = Path("/proc/sys/kernel/random/boot_id")

TRIES = 20
"""To change an object as it was read: each that fails means that somebody else has changed it."""

LOST = "owner_lost"
"""Why a session ends whose owner others have taken for dead."""


def machine() -> str:
    """What tells this start of this machine from every other one."""
    return BOOT.read_text().strip() if BOOT.exists() else "unknown"


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Owner:
    """This process, or one event loop of it, as an owner. Made by `entered`."""

    def __init__(self, connection: Connection, folders: Folders, lease: ApiObject) -> None:
        self._connection, self._path = connection, f"{folders.leases}/{lease['metadata']['name']}"
        self.name = str(label(lease, OWNER))
        self.uid: str = lease["metadata"]["uid"]

    @property
    def labels(self) -> dict[str, str]:
        return MANAGED | {OWNER: self.name}

    @property
    def references(self) -> list[dict[str, Any]]:
        return [
            {
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "name": lease_name(self.name), "uid": self.uid,
            }
        ]  # fmt: skip

    async def renew(self) -> None:
        """InfrastructureError where others have taken this owner for dead."""
        changes = {"spec": {"renewTime": now()}}
        found = await self._connection.patch(self._path, changes, at_once=True)
        if found is None or found["metadata"]["uid"] != self.uid or annotation(found, DEAD):
            raise InfrastructureError(
                LOST,
                f"owner {self.name} was taken for dead: its Lease was not renewed in time",
            )

    async def remove(self, path: str, **options: Any) -> bool:
        """Remove an object as long as it is this owner's, whatever a watch still shows. False where
        it is another one's; True also where it is gone already, or on its way. `options` are those
        of metav1.DeleteOptions."""
        for tried in range(TRIES):
            found = await self._connection.get(path)
            if found is None:
                return True
            if label(found, OWNER) != self.name:
                return False
            if "deletionTimestamp" in found["metadata"]:
                return True
            try:
                await self._connection.delete(path, preconditions=version(found), **options)
                break
            except ApiError as error:
                if error.code != CONFLICT or tried + 1 == TRIES:
                    raise
        return True

    async def take(self, path: str, found: ApiObject) -> None:
        """Make an object this owner's that `found`, as it was read, shows as another one's.
        TransientError where it is gone or about to be, or a third owner has taken it since."""
        former = label(found, OWNER)
        ours = {"labels": {OWNER: self.name}, "ownerReferences": self.references}
        read: ApiObject | None = found
        for _ in range(TRIES):
            if read is None or "deletionTimestamp" in read["metadata"]:
                raise TransientError(f"{path} is gone: it cannot be taken over")
            if (owner := label(read, OWNER)) == self.name:
                return  # the answer to our own change got lost
            if owner != former:
                raise TransientError(f"{path} was taken over by another owner, {owner}")
            changes = {"metadata": ours | {"resourceVersion": read["metadata"]["resourceVersion"]}}
            try:
                if await self._connection.patch(path, changes) is not None:
                    return
            except ApiError as error:
                if error.code != CONFLICT:
                    raise
            read = await self._connection.get(path)
        raise TransientError(f"{path} changes faster than it can be taken over")

    async def leave(self) -> None:
        """Remove the Lease, and with it all that refers to it."""
        await self._connection.delete(self._path, preconditions={"uid": self.uid})


def version(found: ApiObject) -> dict[str, str]:
    """Preconditions that hold as long as nobody has changed an object since it was read."""
    return {name: found["metadata"][name] for name in ("uid", "resourceVersion")}


async def entered(connection: Connection, folders: Folders, *, dead_s: float) -> Owner:
    """A new owner."""
    name = secrets.token_hex(6)
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": lease_name(name),
            "labels": MANAGED | {OWNER: name},
            "annotations": {HOLDER: f"{machine()}/{owner_name()}"},
        },
        "spec": {
            "holderIdentity": name,
            "leaseDurationSeconds": max(1, int(dead_s)),
            "acquireTime": now(),
            "renewTime": now(),
        },
    }
    return Owner(connection, folders, await connection.create(folders.leases, lease))


class OtherOwners:
    """What this process has seen of all owners' Leases."""

    def __init__(self, connection: Connection, folders: Folders, *, every_s: float) -> None:
        """Looked at every so many seconds."""
        self._connection, self._folders, self._every_s = connection, folders, every_s
        self._looked: float | None = None
        self._seen: dict[str, tuple[str, float]] = {}
        """Owner -> its last renewal, and when, by our own clock, it was first seen."""

    async def look(self) -> dict[str, ApiObject]:
        """The Leases of all owners, by owner."""
        query = {"labelSelector": OWNER}
        found = {
            str(label(item, OWNER)): item
            async for item, _ in self._connection.listed(self._folders.leases, query)
            if item
        }
        at = asyncio.get_running_loop().time()
        if self._looked is None or at - self._looked > 3 * self._every_s:
            self._seen.clear()  # nobody looked, or no server answered: then none could renew either
        self._looked = at
        for name, lease in found.items():
            renewed = str((lease.get("spec") or {}).get("renewTime"))
            if self._seen.get(name, ("", 0.0))[0] != renewed:
                self._seen[name] = renewed, at
        for name in self._seen.keys() - found.keys():
            del self._seen[name]
        return found

    def looked_on(self) -> None:
        """What a round took counts as looked at, however many sandboxes it went through."""
        self._looked = asyncio.get_running_loop().time()

    def silent_s(self, owner: str) -> float:
        """For how long its Lease has been seen unchanged."""
        at = asyncio.get_running_loop().time()
        _, since = self._seen.get(owner, ("", at))
        return at - since

    def dead(self, owner: str, lease: ApiObject) -> bool:
        if annotation(lease, DEAD) or ended_here(lease):
            return True
        limit = (lease.get("spec") or {}).get("leaseDurationSeconds") or 60
        return self.silent_s(owner) > limit

    async def declare_dead(self, owner: str, lease: ApiObject) -> bool:
        """Whether it is dead for good; False where it was renewed since `lease` was read."""
        if annotation(lease, DEAD):
            return True
        changes: Mapping[str, Any] = {
            "metadata": {
                "resourceVersion": lease["metadata"]["resourceVersion"],
                "annotations": {DEAD: now()},
            }
        }
        path = f"{self._folders.leases}/{lease_name(owner)}"
        try:
            return await self._connection.patch(path, changes) is not None
        except ApiError as error:
            if error.code != CONFLICT:
                raise
            return False


def ended_here(lease: ApiObject) -> bool:
    """Whether its process was one of this machine and has ended."""
    where, _, process = (annotation(lease, HOLDER) or "").partition("/")
    return where == machine() and where != "unknown" and owner_is_dead(process)


async def heartbeat(owner: Owner, every_s: float) -> None:
    """Renew it until it is cancelled. InfrastructureError where it was taken for dead. A server
    that is not there is waited for: nobody else can reach it either, to find this owner dead."""
    while True:
        await asyncio.sleep(every_s)
        try:
            await owner.renew()
        except SynthError as error:
            if isinstance(error, InfrastructureError) and error.reason == LOST:
                raise
            log.warning("owner %s could not be renewed: %s", owner.name, error)
