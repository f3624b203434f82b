"""Claims: each gets one sandbox, from its warm pool where that has one, and never another's.

A claim is first marked with the sandbox that it is to have, then the sandbox's ownership passes to
it; both writes carry the version that was read, so that of two that want the same one fails. A
claim that brings environment or volumes starts a sandbox of its own.
"""

from datetime import UTC, datetime

from tests.kubernetes.players.api import Api, ApiError, gone
from tests.kubernetes.players.controllers.claiming import (
    ClaimError,
    adopted_metadata,
    checked_metadata,
    cold_sandbox,
)
from tests.kubernetes.players.controllers.marks import (
    ASSIGNED,
    CLAIM_UID,
    CREATED_BY,
    LAUNCH_TYPE,
    POD_NAME,
    TEMPLATE_REF_HASH,
    WARM_ONLY,
    Members,
    condition,
    name_hash,
    owner_key,
    set_condition,
)
from tests.kubernetes.players.controllers.pools import template_key
from tests.kubernetes.players.informer import Informer
from tests.kubernetes.players.objects import (
    CLAIMS,
    SANDBOXES,
    Obj,
    annotations_of,
    condition_of,
    controlled_by,
    deleting,
    key_of,
    labels_of,
    reference_to,
    seconds_until,
    uid_of,
)
from tests.kubernetes.players.work import WorkQueue

EXPIRED = "ClaimExpired"
MISSING_S = 60.0
"""Between two looks for a pool or template that is not there; its appearance ends the wait."""


class ClaimController:
    def __init__(
        self,
        api: Api,
        claims: Informer,
        pools: Informer,
        templates: Informer,
        sandboxes: Informer,
        members: Members,
    ) -> None:
        self._api, self._claims, self._pools = api, claims, pools
        self._templates, self._sandboxes, self._members = templates, sandboxes, members
        self._without: set[str] = set()
        """Claims whose pool or template is not there."""
        self._had: dict[str, Obj] = {}
        """Claim's uid -> its sandbox as the last write left it, until the informer shows it."""
        self.queue = WorkQueue(self._look, workers=40)
        claims.on_change(self._claim_changed)
        sandboxes.on_change(self._sandbox_changed)
        pools.on_change(lambda _old, _new: self._try_again())
        templates.on_change(lambda _old, _new: self._try_again())

    async def run(self) -> None:
        for each in (self._claims, self._pools, self._templates, self._sandboxes):
            await each.synced.wait()
        await self.queue.run()

    def _claim_changed(self, old: Obj | None, new: Obj | None) -> None:
        if new is not None:
            self.queue.add(key_of(new))
        elif old is not None:
            self._had.pop(uid_of(old), None)

    def _sandbox_changed(self, old: Obj | None, new: Obj | None) -> None:
        for each in (old, new):
            if each is not None and (key := owner_key(each, "SandboxClaim")) is not None:
                self.queue.add(key)

    def _try_again(self) -> None:
        waiting, self._without = self._without, set()
        for key in waiting:
            self.queue.add(key)

    async def _look(self, key: str) -> float | None:
        claim = self._claims.get(key)
        if claim is None or deleting(claim):
            return None
        left = time_left(claim)
        if left is not None and left <= 0:
            await self._expire(claim)
            return None
        sandbox, error = None, None
        try:
            checked_metadata(claim)
            sandbox = await self._sandbox(claim)
        except ClaimError as found:
            error = found
        await self._tell(claim, sandbox, error)
        if error is not None and error.missing:
            self._without.add(key)
            return MISSING_S if left is None else min(left, MISSING_S)
        return left

    async def _sandbox(self, claim: Obj) -> Obj:
        """The claim's sandbox: the one that it has, one from its pool, or a new one."""
        if (known := self._known(claim)) is not None:
            return known
        namespace, spec = claim["metadata"]["namespace"], claim["spec"]
        pool = self._pools.get(f"{namespace}/{spec['warmPoolRef']['name']}")
        if pool is None:
            name = spec["warmPoolRef"]["name"]
            raise ClaimError(
                "WarmPoolNotFound", f'SandboxWarmPool "{name}" not found', missing=True
            )
        template = self._templates.get(template_key(pool))
        if not spec.get("env") and not spec.get("volumeClaimTemplates"):
            if (found := await self._assigned(claim, pool, template)) is not None:
                return found
            while (candidate := self._candidate(pool)) is not None:
                if (found := await self._adopt(claim, pool, template, candidate)) is not None:
                    return found
        if template is None:
            name = pool["spec"]["sandboxTemplateRef"]["name"]
            raise ClaimError(
                "TemplateNotFound", f'SandboxTemplate "{name}" not found', missing=True
            )
        return await self._create(claim, template)

    def _known(self, claim: Obj) -> Obj | None:
        namespace, uid = claim["metadata"]["namespace"], uid_of(claim)
        status = (claim.get("status") or {}).get("sandbox") or {}
        for name in (status.get("name"), annotations_of(claim).get(ASSIGNED)):
            found = self._sandboxes.get(f"{namespace}/{name}") if name else None
            if found is not None and controlled_by(found, claim):
                self._had.pop(uid, None)
                return found
        found = self._sandboxes.get(f"{namespace}/{claim['metadata']['name']}")
        if found is not None and controlled_by(found, claim):
            self._had.pop(uid, None)
            return found
        return self._had.get(uid)

    async def _assigned(self, claim: Obj, pool: Obj, template: Obj | None) -> Obj | None:
        """The sandbox that the claim was marked with by a try that failed afterwards."""
        if not (name := annotations_of(claim).get(ASSIGNED)):
            return None
        try:
            found = await self._api.get(SANDBOXES, claim["metadata"]["namespace"], name)
        except ApiError as error:
            if error.status != 404:
                raise
            return None
        if controlled_by(found, claim):
            self._had[uid_of(claim)] = found
            return found
        if deleting(found) or not controlled_by(found, pool):
            return None
        return await self._adopt(claim, pool, template, found)

    def _candidate(self, pool: Obj) -> Obj | None:
        """The oldest ready sandbox of the pool, or else the oldest one, for this claim alone."""
        for key in self._members.active(uid_of(pool)):
            self._members.drop(uid_of(pool), key)
            found = self._sandboxes.get(key)
            if found is not None and not deleting(found) and controlled_by(found, pool):
                return found
        return None

    async def _adopt(self, claim: Obj, pool: Obj, template: Obj | None, sandbox: Obj) -> Obj | None:
        """The sandbox as the claim's own; None where somebody else was faster."""
        meta, name = claim["metadata"], sandbox["metadata"]["name"]
        mark = {"annotations": {ASSIGNED: name}, "resourceVersion": meta["resourceVersion"]}
        try:
            await self._api.patch(CLAIMS, meta["namespace"], meta["name"], {"metadata": mark})
        except ApiError:
            self._members.ready.setdefault(uid_of(pool), {})[key_of(sandbox)] = None
            raise
        created_by = labels_of(claim).get(CREATED_BY)
        labels: Obj = {
            **dict.fromkeys(WARM_ONLY),
            LAUNCH_TYPE: "warm",
            CLAIM_UID: uid_of(claim),
            CREATED_BY: created_by,
        }
        if template is not None:
            labels[TEMPLATE_REF_HASH] = name_hash(template["metadata"]["name"])
        change = {
            "metadata": {
                "uid": uid_of(sandbox),
                "resourceVersion": sandbox["metadata"]["resourceVersion"],
                "labels": labels,
                "annotations": {POD_NAME: name},
                "ownerReferences": [reference_to(claim, CLAIMS)],
            },
            "spec": {"podTemplate": {"metadata": adopted_metadata(claim, template, sandbox)}},
        }
        try:
            found = await self._api.patch(SANDBOXES, meta["namespace"], name, change)
        except ApiError as error:
            if not gone(error):
                raise
            return None
        self._had[uid_of(claim)] = found
        return found

    async def _create(self, claim: Obj, template: Obj) -> Obj:
        namespace, body = claim["metadata"]["namespace"], cold_sandbox(claim, template)
        try:
            found = await self._api.create(SANDBOXES, namespace, body)
        except ApiError as error:
            if error.status != 409:
                raise
            found = await self._api.get(SANDBOXES, namespace, claim["metadata"]["name"])
            if not controlled_by(found, claim):
                name = claim["metadata"]["name"]
                raise ClaimError(
                    "ReconcilerError", f"Error seen: sandbox {name} is another's"
                ) from error
        self._had[uid_of(claim)] = found
        return found

    async def _tell(self, claim: Obj, sandbox: Obj | None, error: ClaimError | None) -> None:
        old = claim.get("status") or {}
        conditions = old.get("conditions") or []
        generation = claim["metadata"].get("generation", 1)
        finished = None if sandbox is None else condition_of(sandbox, "Finished")
        if error is None and finished is None:
            conditions = [each for each in conditions if each["type"] != "Finished"]
        elif finished is not None:
            conditions = set_condition(conditions, finished)
        if error is not None:
            ready = condition("Ready", "False", error.reason, error.message, generation)
        elif (found := condition_of(sandbox or {}, "Ready")) is not None:
            ready = found
        else:
            ready = condition(
                "Ready", "False", "SandboxNotReady", "Sandbox is not ready", generation
            )
        status: Obj = {"conditions": set_condition(conditions, ready)}
        if sandbox is not None:
            addresses = (sandbox.get("status") or {}).get("podIPs")
            status["sandbox"] = {"name": sandbox["metadata"]["name"], "podIPs": addresses}
        await self._write(claim, status)

    async def _write(self, claim: Obj, status: Obj) -> None:
        old, meta = claim.get("status") or {}, claim["metadata"]
        shown = old | {"sandbox": {"podIPs": None, **(old.get("sandbox") or {})}}
        if all(shown.get(name) == value for name, value in status.items()):
            return
        body = {"metadata": {"uid": meta["uid"]}, "status": status}
        try:
            await self._api.patch(
                CLAIMS, meta["namespace"], meta["name"], body, subresource="status"
            )
        except ApiError as error:
            if not gone(error):
                raise

    async def _expire(self, claim: Obj) -> None:
        """Its time is over: the claim goes, or stays to say so without its sandbox."""
        meta = claim["metadata"]
        policy = claim["spec"]["lifecycle"].get("shutdownPolicy", "Retain")
        new = condition(
            "Ready", "False", EXPIRED, "Claim expired. Sandbox cleanup initiated.",
            meta.get("generation", 1),
        )  # fmt: skip
        conditions = (claim.get("status") or {}).get("conditions") or []
        await self._write(claim, {"conditions": set_condition(conditions, new)})
        try:
            if policy != "Retain":
                foreground = "Foreground" if policy == "DeleteForeground" else None
                await self._api.delete(
                    CLAIMS, meta["namespace"], meta["name"], uid=meta["uid"], policy=foreground
                )
            elif (sandbox := self._known(claim)) is not None and not deleting(sandbox):
                await self._api.delete(
                    SANDBOXES, meta["namespace"], sandbox["metadata"]["name"], uid=uid_of(sandbox)
                )
        except ApiError as error:
            if not gone(error):
                raise


def time_left(claim: Obj) -> float | None:
    """Until the claim expires, by its time or by how long it has been finished."""
    lifecycle = claim["spec"].get("lifecycle") or {}
    found = []
    if (time := lifecycle.get("shutdownTime")) is not None:
        found.append(seconds_until(time))
    finished = condition_of(claim, "Finished")
    kept_s = lifecycle.get("ttlSecondsAfterFinished")
    if finished is not None and kept_s is not None:
        since = datetime.fromisoformat(finished["lastTransitionTime"])
        found.append(kept_s - (datetime.now(UTC) - since).total_seconds())
    return min(found, default=None)
