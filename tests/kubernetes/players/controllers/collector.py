"""The garbage collector: what is owned goes once its owners are gone.

Background: an owner that is deleted takes its dependents along afterwards. Foreground (finalizer
`foregroundDeletion`): the owner stays until those that block it are gone. Orphan (finalizer
`orphan`): the dependents lose their reference first. An owner is told by uid, in the dependent's
own namespace; one that the watches do not show is asked for before anything is deleted.
"""

import asyncio
from typing import NamedTuple

from tests.kubernetes.players.api import Api, ApiError, gone
from tests.kubernetes.players.informer import Informer
from tests.kubernetes.players.objects import (
    CLAIMS,
    CONFIG_MAPS,
    LEASES,
    PODS,
    POLICIES,
    POOLS,
    SANDBOXES,
    SECRETS,
    SERVICES,
    TEMPLATES,
    Obj,
    Resource,
    deleting,
    owners_of,
    uid_of,
)
from tests.kubernetes.players.work import WorkQueue

COLLECTED = (
    PODS, CONFIG_MAPS, SECRETS, SERVICES, LEASES, POLICIES, SANDBOXES, CLAIMS, POOLS, TEMPLATES,
)  # fmt: skip
"""What may own or be owned here; a real collector asks the server for all that there is."""

BY_KIND = {(each.api_version, each.kind): each for each in COLLECTED}
FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"


class Item(NamedTuple):
    resource: Resource
    obj: Obj


class Collector:
    def __init__(self, api: Api, informers: dict[Resource, Informer]) -> None:
        self._api, self._informers = api, informers
        self._items: dict[str, Item] = {}
        self._dependents: dict[str, set[str]] = {}
        """An owner's uid -> its dependents' uids."""
        self.queue = WorkQueue(self._look, workers=40)
        for resource in COLLECTED:
            informers[resource].on_change(
                lambda old, new, resource=resource: self._changed(resource, old, new)
            )

    async def run(self) -> None:
        # an owner is not gone because its watch has not begun; resources that the server does not
        # have are never shown, and own nothing
        async with asyncio.TaskGroup() as group:
            for resource in COLLECTED:
                group.create_task(self._shown(resource))
        for uid in list(self._items):
            self.queue.add(uid)
        await self.queue.run()

    async def _shown(self, resource: Resource) -> None:
        while not self._informers[resource].synced.is_set():
            try:
                await self._api.request("GET", resource.path(), query={"limit": "1"})
            except ApiError as error:
                if error.status == 404:
                    return
            await asyncio.sleep(0.1)

    def _changed(self, resource: Resource, old: Obj | None, new: Obj | None) -> None:
        if old is not None:
            for owner in owners_of(old):
                if (found := self._dependents.get(owner["uid"])) is not None:
                    found.discard(uid_of(old))
                    if not found:
                        del self._dependents[owner["uid"]]
        if new is None:
            assert old is not None
            self._items.pop(uid_of(old), None)
            for uid in self._dependents.get(uid_of(old), set()):
                self.queue.add(uid)
            self._wake_owners(old)
            return
        self._items[uid_of(new)] = Item(resource, new)
        for owner in owners_of(new):
            self._dependents.setdefault(owner["uid"], set()).add(uid_of(new))
        if self._concerns(old, new):
            self.queue.add(uid_of(new))
        if old is not None and owners_of(old) != owners_of(new):
            self._wake_owners(old)

    def _wake_owners(self, obj: Obj) -> None:
        """Owners that wait for their dependents."""
        for owner in owners_of(obj):
            found = self._items.get(owner["uid"])
            if found is not None and deleting(found.obj):
                self.queue.add(owner["uid"])

    def _concerns(self, old: Obj | None, new: Obj) -> bool:
        if deleting(new):
            return bool(new["metadata"].get("finalizers"))
        if not owners_of(new):
            return False
        return old is None or owners_of(old) != owners_of(new)

    async def _look(self, uid: str) -> float | None:
        item = self._items.get(uid)
        if item is None:
            return None
        if deleting(item.obj):
            finalizers = item.obj["metadata"].get("finalizers") or []
            if ORPHAN in finalizers:
                await self._orphan(item)
            elif FOREGROUND in finalizers:
                return await self._foreground(item)
            return None
        await self._collect(item)
        return None

    async def _collect(self, item: Item) -> None:
        """Delete what has no owner left; take references away that lead nowhere."""
        solid, dangling, waiting = [], [], []
        for owner in owners_of(item.obj):
            found = await self._owner(item, owner)
            if found is None:
                dangling.append(owner["uid"])
            elif deleting(found) and FOREGROUND in (found["metadata"].get("finalizers") or []):
                waiting.append(owner["uid"])
            else:
                solid.append(owner["uid"])
        if not dangling and not waiting:
            return
        if solid:
            await self._unlink(item, {*dangling, *waiting})
            return
        policy = "Background"
        if waiting and self._dependents.get(uid_of(item.obj)):
            policy = "Foreground"
        finalizers = item.obj["metadata"].get("finalizers") or []
        if ORPHAN in finalizers:
            policy = "Orphan"
        elif FOREGROUND in finalizers:
            policy = "Foreground"
        meta = item.obj["metadata"]
        try:
            await self._api.delete(
                item.resource, meta.get("namespace"), meta["name"], uid=meta["uid"], policy=policy
            )
        except ApiError as error:
            if not gone(error):
                raise

    async def _owner(self, item: Item, owner: Obj) -> Obj | None:
        namespace = item.obj["metadata"].get("namespace")
        known = self._items.get(owner["uid"])
        if known is not None:
            found = known.obj["metadata"].get("namespace")
            return known.obj if found in (None, namespace) else None
        resource = BY_KIND.get((owner["apiVersion"], owner["kind"]))
        if resource is None:
            return owner | {"metadata": {}}  # a kind that is not collected here owns for ever
        try:
            asked = await self._api.get(resource, namespace, owner["name"])
        except ApiError as error:
            if error.status != 404:
                raise
            return None
        return asked if uid_of(asked) == owner["uid"] else None

    async def _unlink(self, item: Item, owners: set[str]) -> None:
        meta = item.obj["metadata"]
        left = [owner for owner in owners_of(item.obj) if owner["uid"] not in owners]
        change = {
            "uid": meta["uid"],
            "resourceVersion": meta["resourceVersion"],
            "ownerReferences": left or None,
        }
        try:
            await self._api.patch(
                item.resource, meta.get("namespace"), meta["name"], {"metadata": change}
            )
        except ApiError as error:
            if error.status != 404:
                raise  # another version: its change brings it here again

    async def _orphan(self, item: Item) -> None:
        uid = uid_of(item.obj)
        for dependent in list(self._dependents.get(uid, ())):
            if (found := self._items.get(dependent)) is not None:
                await self._unlink(found, {uid})
        await self._release(item, ORPHAN)

    async def _foreground(self, item: Item) -> float | None:
        uid = uid_of(item.obj)
        blocking = False
        for dependent in list(self._dependents.get(uid, ())):
            if (found := self._items.get(dependent)) is None:
                continue
            mine = next(owner for owner in owners_of(found.obj) if owner["uid"] == uid)
            blocking |= bool(mine.get("blockOwnerDeletion"))
            if not deleting(found.obj):
                self.queue.add(dependent)
        if not blocking:
            await self._release(item, FOREGROUND)
        return None

    async def _release(self, item: Item, finalizer: str) -> None:
        meta = item.obj["metadata"]
        left = [each for each in meta.get("finalizers") or [] if each != finalizer]
        change = {
            "uid": meta["uid"],
            "resourceVersion": meta["resourceVersion"],
            "finalizers": left or None,
        }
        try:
            await self._api.patch(
                item.resource, meta.get("namespace"), meta["name"], {"metadata": change}
            )
        except ApiError as error:
            if error.status != 404:
                raise
