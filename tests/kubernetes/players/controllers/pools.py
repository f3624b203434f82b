"""Warm pools: as many unclaimed sandboxes of a template as their `replicas` say."""

import asyncio

from tests.kubernetes.players.api import Api, ApiError, gone
from tests.kubernetes.players.controllers.marks import (
    CREATED_BY,
    LAUNCH_TYPE,
    TEMPLATE_HASH,
    TEMPLATE_REF,
    TEMPLATE_REF_HASH,
    WARM_POOL,
    Members,
    blueprint,
    digest,
    name_hash,
    owner_key,
)
from tests.kubernetes.players.informer import Informer
from tests.kubernetes.players.objects import (
    POOLS,
    SANDBOXES,
    Obj,
    controlled_by,
    deleting,
    key_of,
    labels_of,
    reference_to,
    uid_of,
)
from tests.kubernetes.players.work import WorkQueue

BATCH = 300
"""Sandboxes made or deleted in one go."""

SOON_S = 0.05
"""Changes of members are looked at together."""


class PoolController:
    def __init__(
        self,
        api: Api,
        pools: Informer,
        templates: Informer,
        sandboxes: Informer,
        members: Members,
    ) -> None:
        self._api, self._pools, self._templates = api, pools, templates
        self._sandboxes, self._members = sandboxes, members
        self._expected: dict[str, set[str]] = {}
        """Pool -> uids of sandboxes made that the informer has not shown yet."""
        self._removed: dict[str, set[str]] = {}
        """Pool -> keys of sandboxes deleted that it still shows."""
        self.queue = WorkQueue(self._look, workers=8)
        sandboxes.on_change(self._sandbox_changed)
        pools.on_change(self._pool_changed)
        templates.on_change(self._template_changed)

    async def run(self) -> None:
        for each in (self._pools, self._templates, self._sandboxes):
            await each.synced.wait()
        await self.queue.run()

    def _pool_changed(self, old: Obj | None, new: Obj | None) -> None:
        if new is not None:
            self.queue.add(key_of(new))
        elif old is not None:
            self._expected.pop(uid_of(old), None)
            self._removed.pop(uid_of(old), None)

    def _template_changed(self, _old: Obj | None, new: Obj | None) -> None:
        if new is not None:
            for pool in self._pools:
                if template_key(pool) == key_of(new):
                    self.queue.add(key_of(pool))

    def _sandbox_changed(self, old: Obj | None, new: Obj | None) -> None:
        for each in (old, new):
            if each is not None and (key := owner_key(each, "SandboxWarmPool")) is not None:
                self.queue.add(key, SOON_S)
        if new is not None:
            for expected in self._expected.values():
                expected.discard(uid_of(new))
        elif old is not None:
            for removed in self._removed.values():
                removed.discard(key_of(old))

    async def _look(self, key: str) -> float | None:
        pool = self._pools.get(key)
        if pool is None or deleting(pool):
            return None
        uid = uid_of(pool)
        expected = self._expected.setdefault(uid, set())
        removed = self._removed.setdefault(uid, set())
        active = [each for each in self._members.active(uid) if each not in removed]
        ending = len(self._members.ending.get(uid, {})) + len(removed)
        wanted = pool["spec"].get("replicas", 0)
        template = self._templates.get(template_key(pool))
        if template is not None:
            stale = self._stale(pool, template, active)
            if missing := max(0, wanted - len(active) - len(expected) - ending):
                await self._create(pool, template, min(missing, BATCH), expected)
            if surplus := [*stale, *active[::-1]][: max(len(stale), len(active) - wanted)]:
                await self._delete(pool, list(dict.fromkeys(surplus))[:BATCH], removed)
        await self._tell(pool, len(active))
        short = template is not None and wanted > len(active) + len(expected) + ending
        return SOON_S if short else None

    def _stale(self, pool: Obj, template: Obj, active: list[str]) -> list[str]:
        """Members of an earlier form of the template, where the pool replaces them at once."""
        if (pool["spec"].get("updateStrategy") or {}).get("type") != "Recreate":
            return []
        current = digest(blueprint(template))
        found = [self._sandboxes.get(key) for key in active]
        return [
            key_of(each)
            for each in found
            if each is not None and labels_of(each).get(TEMPLATE_HASH) != current
        ]

    async def _create(self, pool: Obj, template: Obj, count: int, expected: set[str]) -> None:
        body, namespace = member(pool, template), pool["metadata"]["namespace"]

        async def create() -> None:
            made = await self._api.create(SANDBOXES, namespace, body)
            if self._sandboxes.get(key_of(made)) is None:
                expected.add(uid_of(made))

        results = await asyncio.gather(*(create() for _ in range(count)), return_exceptions=True)
        for error in results:
            if isinstance(error, BaseException):
                raise error

    async def _delete(self, pool: Obj, keys: list[str], removed: set[str]) -> None:
        for key in keys:
            sandbox = self._sandboxes.get(key)
            if sandbox is None:
                continue
            self._members.drop(uid_of(pool), key)
            if not controlled_by(sandbox, pool):  # claimed, and still among the ready ones
                continue
            meta = sandbox["metadata"]
            removed.add(key)
            try:  # one that was claimed in the meantime has another version
                await self._api.delete(
                    SANDBOXES, meta["namespace"], meta["name"],
                    uid=meta["uid"], version=meta["resourceVersion"],
                )  # fmt: skip
            except ApiError as error:
                removed.discard(key)
                if not gone(error):
                    raise

    async def _tell(self, pool: Obj, active: int) -> None:
        meta, uid = pool["metadata"], uid_of(pool)
        status = {
            "replicas": active,
            "readyReplicas": len(self._members.ready.get(uid, {})),
            "selector": f"{WARM_POOL}={name_hash(meta['name'])}",
            "observedGeneration": meta.get("generation", 1),
        }
        old = pool.get("status") or {}
        if any(old.get(name) != value for name, value in status.items()):
            try:
                await self._api.patch(
                    POOLS, meta["namespace"], meta["name"], {"status": status}, subresource="status"
                )
            except ApiError as error:
                if not gone(error):
                    raise


def template_key(pool: Obj) -> str:
    return f"{pool['metadata']['namespace']}/{pool['spec']['sandboxTemplateRef']['name']}"


def member(pool: Obj, template: Obj) -> Obj:
    """A sandbox of the pool, not yet made."""
    name, reference = pool["metadata"]["name"], template["metadata"]["name"]
    marks = {
        WARM_POOL: name_hash(name),
        TEMPLATE_REF_HASH: name_hash(reference),
        TEMPLATE_HASH: digest(blueprint(template)),
    }
    spec = blueprint(template)
    meta = spec["podTemplate"].get("metadata") or {}
    labels = (meta.get("labels") or {}) | marks
    spec["podTemplate"] = spec["podTemplate"] | {"metadata": meta | {"labels": labels}}
    return {
        "metadata": {
            "generateName": f"{name}-",
            "labels": {**marks, LAUNCH_TYPE: "warm", CREATED_BY: "controller"},
            "annotations": {TEMPLATE_REF: reference},
            "ownerReferences": [reference_to(pool, POOLS)],
        },
        "spec": spec,
    }
