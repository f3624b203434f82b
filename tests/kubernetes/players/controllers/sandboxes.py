"""Sandboxes: each has its Pod while it runs and none while it is suspended or has expired.

A Pod that goes away is made again, under the same name and with another uid, as the real controller
does: whoever holds a sandbox has to notice that by itself.
"""

from typing import Any

from tests.kubernetes.players.api import Api, ApiError, gone
from tests.kubernetes.players.controllers.marks import (
    NAME_HASH,
    POD_NAME,
    PROPAGATED,
    condition,
    name_hash,
    owner_key,
    set_condition,
)
from tests.kubernetes.players.informer import Informer
from tests.kubernetes.players.objects import (
    PODS,
    SANDBOXES,
    SERVICES,
    Obj,
    annotations_of,
    condition_of,
    controlled_by,
    deleting,
    is_true,
    key_of,
    labels_of,
    phase_of,
    reference_to,
    seconds_until,
    uid_of,
)
from tests.kubernetes.players.work import WorkQueue

EXPIRED = "SandboxExpired"
CLAIMS_UNPLAYED = "volumeClaimTemplates need a storage provisioner, which is not played"


class SandboxController:
    def __init__(self, api: Api, sandboxes: Informer, pods: Informer) -> None:
        self._api, self._sandboxes, self._pods = api, sandboxes, pods
        self.queue = WorkQueue(self._look, workers=40)
        sandboxes.on_change(self._sandbox_changed)
        pods.on_change(self._pod_changed)

    async def run(self) -> None:
        await self._sandboxes.synced.wait()
        await self._pods.synced.wait()
        await self.queue.run()

    def _sandbox_changed(self, _old: Obj | None, new: Obj | None) -> None:
        if new is not None:
            self.queue.add(key_of(new))

    def _pod_changed(self, old: Obj | None, new: Obj | None) -> None:
        pod = new or old
        assert pod is not None
        if (key := owner_key(pod, "Sandbox")) is not None:
            self.queue.add(key)

    async def _look(self, key: str) -> float | None:
        sandbox = self._sandboxes.get(key)
        if sandbox is None or deleting(sandbox):
            return None
        namespace = sandbox["metadata"]["namespace"]
        name = annotations_of(sandbox).get(POD_NAME) or sandbox["metadata"]["name"]
        pod = self._pods.get(f"{namespace}/{name}")
        left = time_left(sandbox)
        if left is not None and left <= 0:
            await self._expire(sandbox, pod)
            return None
        problem = ""
        try:
            if sandbox["spec"].get("volumeClaimTemplates"):
                raise ValueError(CLAIMS_UNPLAYED)
            pod = await self._pod(sandbox, pod, name)
            await self._service(sandbox)
        except ValueError as error:
            problem = str(error)
        except ApiError as error:
            if error.status not in (403, 422):
                raise
            problem = str(error)
        await self._tell(sandbox, self._status(sandbox, pod, problem))
        if problem and left is None:
            return 5.0
        return left

    async def _pod(self, sandbox: Obj, pod: Obj | None, name: str) -> Obj | None:
        """The Sandbox's Pod as it should be; None where there is none."""
        suspended = sandbox["spec"].get("operatingMode") == "Suspended"
        if pod is None:
            return None if suspended else await self._create(sandbox, name)
        if not controlled_by(pod, sandbox):
            if suspended:
                return pod
            raise ValueError(f"Pod {name} is not owned by this sandbox")
        if suspended:
            if not deleting(pod):
                await self._delete_pod(pod)
            return pod
        return await self._relabel(sandbox, pod)

    async def _create(self, sandbox: Obj, name: str) -> Obj | None:
        template = sandbox["spec"]["podTemplate"]
        meta = template.get("metadata") or {}
        labels = meta.get("labels") or {}
        annotations = (meta.get("annotations") or {}) | {PROPAGATED: ",".join(sorted(labels))}
        hashed = name_hash(sandbox["metadata"]["name"])
        body = {
            "metadata": {
                "name": name,
                "labels": {**labels, NAME_HASH: hashed},
                "annotations": annotations,
                "ownerReferences": [reference_to(sandbox, SANDBOXES)],
            },
            "spec": template["spec"],
        }
        try:
            return await self._api.create(PODS, sandbox["metadata"]["namespace"], body)
        except ApiError as error:
            if error.status != 409:
                raise
            return None  # the informer will show it

    async def _relabel(self, sandbox: Obj, pod: Obj) -> Obj:
        """Give the Pod the labels and annotations of the Sandbox's template, as after a claim."""
        meta = sandbox["spec"]["podTemplate"].get("metadata") or {}
        wanted = meta.get("labels") or {}
        propagated = ",".join(sorted(wanted))
        before = annotations_of(pod).get(PROPAGATED, "")
        labels: Obj = {k: v for k, v in wanted.items() if labels_of(pod).get(k) != v}
        labels |= dict.fromkeys(set(before.split(",")) - {""} - set(wanted))
        annotations = {
            k: v
            for k, v in (meta.get("annotations") or {}).items()
            if annotations_of(pod).get(k) != v
        }
        if before != propagated:
            annotations[PROPAGATED] = propagated
        if not labels and not annotations:
            return pod
        change: dict[str, Any] = {"uid": uid_of(pod), "labels": labels, "annotations": annotations}
        place = pod["metadata"]["namespace"], pod["metadata"]["name"]
        try:
            return await self._api.patch(PODS, *place, {"metadata": change})
        except ApiError as error:
            if not gone(error):
                raise
            return pod

    async def _delete_pod(self, pod: Obj) -> None:
        place = pod["metadata"]["namespace"], pod["metadata"]["name"]
        try:
            await self._api.delete(PODS, *place, uid=uid_of(pod))
        except ApiError as error:
            if not gone(error):
                raise

    async def _service(self, sandbox: Obj) -> None:
        """A headless Service under the Sandbox's name, where it asks for one."""
        name = sandbox["metadata"]["name"]
        if not sandbox["spec"].get("service") or (sandbox.get("status") or {}).get("service"):
            return
        hashed = name_hash(name)
        body = {
            "metadata": {
                "name": name,
                "labels": {NAME_HASH: hashed},
                "ownerReferences": [reference_to(sandbox, SANDBOXES)],
            },
            "spec": {"clusterIP": "None", "selector": {NAME_HASH: hashed}},
        }
        try:
            await self._api.create(SERVICES, sandbox["metadata"]["namespace"], body)
        except ApiError as error:
            if error.status != 409:
                raise

    def _status(self, sandbox: Obj, pod: Obj | None, problem: str) -> Obj:
        mine = pod is not None and controlled_by(pod, sandbox)
        generation = sandbox["metadata"].get("generation", 1)
        conditions = (sandbox.get("status") or {}).get("conditions") or []
        kept = [each for each in conditions if each["type"] not in ("Finished", "PodScheduled")]
        for new in computed(sandbox, pod, mine, problem, generation):
            old = next((each for each in conditions if each["type"] == new["type"]), None)
            kept = set_condition([*kept, old] if old and old not in kept else kept, new)
        status: Obj = {"conditions": kept, "podIPs": None, "nodeName": None}
        if pod is not None:
            name = sandbox["metadata"]["name"]
            status["selector"] = f"{NAME_HASH}={name_hash(name)}"
        if pod is not None and mine:
            addresses = (pod.get("status") or {}).get("podIPs") or []
            status["podIPs"] = [each["ip"] for each in addresses] or None
            status["nodeName"] = pod["spec"].get("nodeName")
        if sandbox["spec"].get("service"):
            meta = sandbox["metadata"]
            status["service"] = meta["name"]
            status["serviceFQDN"] = f"{meta['name']}.{meta['namespace']}.svc.cluster.local"
        return status

    async def _tell(self, sandbox: Obj, status: Obj) -> None:
        """Write the status where it differs; the node's name alone waits for something else."""
        old = sandbox.get("status") or {}
        changed = {name for name, value in status.items() if old.get(name) != value}
        if not changed or (changed == {"nodeName"} and not is_true(sandbox, "Ready")):
            return
        place = sandbox["metadata"]["namespace"], sandbox["metadata"]["name"]
        body = {"metadata": {"uid": uid_of(sandbox)}, "status": status}
        try:
            await self._api.patch(SANDBOXES, *place, body, subresource="status")
        except ApiError as error:
            if not gone(error):
                raise

    async def _expire(self, sandbox: Obj, pod: Obj | None) -> None:
        generation = sandbox["metadata"].get("generation", 1)
        new = condition("Ready", "False", EXPIRED, "Sandbox has expired", generation)
        conditions = (sandbox.get("status") or {}).get("conditions") or []
        status = {
            "conditions": set_condition(conditions, new),
            "podIPs": None,
            "nodeName": None,
        }
        await self._tell(sandbox, status)
        if pod is not None and controlled_by(pod, sandbox) and not deleting(pod):
            await self._delete_pod(pod)
        if sandbox["spec"].get("shutdownPolicy") == "Delete":
            place = sandbox["metadata"]["namespace"], sandbox["metadata"]["name"]
            try:
                await self._api.delete(SANDBOXES, *place, uid=uid_of(sandbox))
            except ApiError as error:
                if not gone(error):
                    raise


def time_left(sandbox: Obj) -> float | None:
    """Until the Sandbox expires; None where it does not."""
    time = sandbox["spec"].get("shutdownTime")
    return None if time is None else seconds_until(time)


def computed(sandbox: Obj, pod: Obj | None, mine: bool, problem: str, generation: int) -> list[Obj]:
    """The conditions that apply now."""
    suspended = sandbox["spec"].get("operatingMode") == "Suspended"
    found = [suspension(suspended, pod, mine, generation)]
    phase = phase_of(pod) if pod is not None and mine else ""
    if phase in ("Succeeded", "Failed"):
        said = "completed successfully" if phase == "Succeeded" else "failed"
        found.append(condition("Finished", "True", f"Pod{phase}", f"Pod {said}", generation))
    if pod is not None and mine:
        scheduled = condition_of(pod, "PodScheduled") or {
            "status": "Unknown",
            "reason": "PodSchedulingUnknown",
            "message": "Pod has not reported a PodScheduled condition yet",
        }
        reason = scheduled.get("reason") or "PodScheduled"
        found.append(
            condition(
                "PodScheduled",
                scheduled["status"],
                reason,
                scheduled.get("message", ""),
                generation,
            )
        )
    found.append(readiness(suspended, pod, problem, generation))
    return found


def suspension(suspended: bool, pod: Obj | None, mine: bool, generation: int) -> Obj:
    if not suspended:
        why = ("False", "NotSuspended", "Sandbox is not suspended")
    elif pod is None:
        why = ("True", "PodTerminated", "Pod has been terminated. Sandbox is suspended")
    elif mine:
        why = ("False", "PodTerminating", "Pod is terminating. Sandbox is suspending")
    else:
        why = ("False", "PodNotOwned", "Refused to delete a pod that this sandbox does not own")
    return condition("Suspended", *why, generation)


def readiness(suspended: bool, pod: Obj | None, problem: str, generation: int) -> Obj:
    phase = "" if pod is None else phase_of(pod)
    if problem:
        why = ("False", "ReconcilerError", f"Error seen: {problem}")
    elif suspended:
        ing = "suspended" if pod is None else "suspending"
        why = ("False", "SandboxSuspended", f"Sandbox is {ing}")
    elif phase in ("Succeeded", "Failed"):
        said = "completed successfully" if phase == "Succeeded" else "failed"
        why = ("False", f"Pod{phase}", f"Pod {said}")
    elif pod is None:
        why = ("False", "DependenciesNotReady", "Pod does not exist")
    elif phase != "Running":
        why = ("False", "DependenciesNotReady", f"Pod exists with phase: {phase}")
    elif not is_true(pod, "Ready") or not (pod.get("status") or {}).get("podIPs"):
        why = ("False", "DependenciesNotReady", "Pod is Running but not Ready")
    else:
        why = ("True", "DependenciesReady", "Pod is Ready")
    return condition("Ready", *why, generation)
