"""Nodes that fall silent: their condition, their taints, and what becomes of their Pods.

As the node lifecycle controller, the taint eviction controller and the Pod garbage collector do:
a node whose Lease is not renewed becomes Unknown and tainted, its Pods are not ready and, once they
no longer tolerate that, deleted. A Pod that is deleted stays until its node says that it is gone,
or until the Node object itself goes; then it is removed by force.
"""

import asyncio
import time

from tests.kubernetes.players.api import Api, ApiError, gone
from tests.kubernetes.players.informer import Informer
from tests.kubernetes.players.objects import (
    NODES,
    PODS,
    Obj,
    condition_of,
    deleting,
    finished,
    is_true,
    now,
    uid_of,
    with_condition,
)
from tests.kubernetes.players.work import WorkQueue

UNREACHABLE = "node.kubernetes.io/unreachable"
SILENT = "Kubelet stopped posting node status."
NOT_READY: Obj = {
    "type": "Ready",
    "status": "False",
    "reason": "NodeNotReady",
    "message": "Node is not ready",
}
DEFAULT_TOLERANCE_S = 300
"""What the API server's defaults give every Pod."""


class NodeLifecycle:
    def __init__(
        self, api: Api, pods: Informer, nodes: Informer, leases: Informer, grace_s: float
    ) -> None:
        self._api, self._pods, self._nodes, self._grace_s = api, pods, nodes, grace_s
        self._renewed: dict[str, tuple[str, float]] = {}
        """Node -> the Lease's last time, and when it was seen here: clocks are not compared."""
        self._unreachable: dict[str, float] = {}
        self._tolerance: dict[str, float] = {}
        self._told: set[str] = set()
        self.queue = WorkQueue(self._look, workers=4)
        self._synced = (pods.synced, nodes.synced, leases.synced)
        leases.on_change(self._lease_changed)
        nodes.on_change(self._node_changed)
        pods.on_change(self._pod_changed)

    async def run(self) -> None:
        for synced in self._synced:
            await synced.wait()
        await self.queue.run()

    def notice(self, node: str, evict_after_s: float | None) -> None:
        """Take the node for silent now, rather than when its Lease has aged; until `returned`."""
        self._told.add(node)
        if evict_after_s is not None:
            self._tolerance[node] = evict_after_s
        self._unreachable.setdefault(node, time.monotonic())
        self.queue.add(node)

    def returned(self, node: str) -> None:
        self._told.discard(node)
        self._unreachable.pop(node, None)
        renewed, _ = self._renewed.get(node, ("", 0))
        self._renewed[node] = renewed, time.monotonic()

    def _lease_changed(self, _old: Obj | None, new: Obj | None) -> None:
        if new is None or new["metadata"]["namespace"] != "kube-node-lease":
            return
        node, renewed = new["metadata"]["name"], new["spec"].get("renewTime", "")
        known = self._renewed.get(node)
        if node not in self._told and (known is None or known[0] != renewed):
            self._renewed[node] = renewed, time.monotonic()
            if self._unreachable.pop(node, None) is not None:
                self.queue.add(node)

    def _node_changed(self, _old: Obj | None, new: Obj | None) -> None:
        node = new or _old
        assert node is not None
        self.queue.add(node["metadata"]["name"])

    def _pod_changed(self, old: Obj | None, new: Obj | None) -> None:
        """Pods of a node that is lost or not there at all."""
        if new is None or not (node := new["spec"].get("nodeName")):
            return
        if node in self._unreachable or self._nodes.get(node) is None:
            self.queue.add(node)

    async def _look(self, name: str) -> float | None:
        node = self._nodes.get(name)
        if node is None:
            if self._synced[1].is_set():
                await self._remove_pods(name)
            return None
        _, seen = self._renewed.get(name, ("", 0))
        if name not in self._unreachable:
            left = seen + self._grace_s - time.monotonic()
            if left > 0:
                await self._reachable(node)
                return left
            if not seen:
                return self._grace_s  # it has never told anything: it is being registered
            self._unreachable[name] = time.monotonic()
        await self._mark(node)
        return await self._evict(name)

    async def _reachable(self, node: Obj) -> None:
        taints = (node.get("spec") or {}).get("taints") or []
        left = [taint for taint in taints if taint["key"] != UNREACHABLE]
        if len(left) != len(taints):
            self._tolerance.pop(node["metadata"]["name"], None)
            await self._patch(node, {"spec": {"taints": left or None}})

    async def _mark(self, node: Obj) -> None:
        ready = condition_of(node, "Ready")
        if ready is not None and ready["status"] != "Unknown":
            new = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
            conditions = with_condition(node["status"]["conditions"], new | {"message": SILENT})
            await self._patch(node, {"status": {"conditions": conditions}}, subresource="status")
        taints = (node.get("spec") or {}).get("taints") or []
        if all(taint["key"] != UNREACHABLE for taint in taints):
            new_taints = [
                {"key": UNREACHABLE, "effect": effect, "timeAdded": now()}
                for effect in ("NoSchedule", "NoExecute")
            ]
            await self._patch(node, {"spec": {"taints": [*taints, *new_taints]}})

    async def _patch(self, node: Obj, body: Obj, subresource: str | None = None) -> None:
        name = node["metadata"]["name"]
        try:
            await self._api.patch(NODES, None, name, body, subresource=subresource)
        except ApiError as error:
            if not gone(error):
                raise

    def _on(self, node: str) -> list[Obj]:
        return [pod for pod in self._pods if pod["spec"].get("nodeName") == node]

    async def _evict(self, node: str) -> float | None:
        """Say that the Pods are not ready, and delete those that have waited long enough."""
        waits: list[float] = []
        for pod in self._on(node):
            if (since := self._unreachable.get(node)) is None:
                return None  # it has come back meanwhile
            silent_s = time.monotonic() - since
            if finished(pod):
                continue
            allowed = None if deleting(pod) else self._tolerates_s(pod, node)
            if allowed is None:
                await self._unready(pod)
            elif (left := allowed - silent_s) > 0:
                await self._unready(pod)
                waits.append(left)
            else:
                await self._delete(
                    pod, "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint"
                )
        return min(waits) + 0.01 if waits else None

    def _tolerates_s(self, pod: Obj, node: str) -> float | None:
        """Seconds that a Pod stays on a node that does not answer; None for ever."""
        if node in self._tolerance:
            return self._tolerance[node]
        for each in pod["spec"].get("tolerations") or []:
            if each.get("key") in (None, "", UNREACHABLE) and each.get("effect") != "NoSchedule":
                return each.get("tolerationSeconds")
        return DEFAULT_TOLERANCE_S

    async def _unready(self, pod: Obj) -> None:
        if is_true(pod, "Ready"):
            await self._conditions(pod, [NOT_READY])

    async def _conditions(self, pod: Obj, new: list[Obj], phase: str | None = None) -> None:
        meta = pod["metadata"]
        conditions = (pod.get("status") or {}).get("conditions") or []
        for each in new:
            conditions = with_condition(conditions, each)
        status: Obj = {"conditions": conditions}
        if phase is not None:
            status["phase"] = phase
        body = {"metadata": {"uid": meta["uid"]}, "status": status}
        try:
            await self._api.patch(PODS, meta["namespace"], meta["name"], body, subresource="status")
        except ApiError as error:
            if not gone(error):
                raise

    async def _delete(
        self, pod: Obj, reason: str, message: str, grace_s: int | None = None
    ) -> None:
        """Say why, in one write with that it is not ready, and delete it."""
        new = {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": message}
        phase = "Failed" if grace_s == 0 and not finished(pod) else None
        await self._conditions(pod, [NOT_READY, new] if is_true(pod, "Ready") else [new], phase)
        meta = pod["metadata"]
        try:
            await self._api.delete(
                PODS, meta["namespace"], meta["name"], uid=uid_of(pod), grace_s=grace_s
            )
        except ApiError as error:
            if not gone(error):
                raise

    async def _remove_pods(self, node: str) -> None:
        self._unreachable.pop(node, None)
        self._renewed.pop(node, None)
        for pod in self._on(node):
            await self._delete(pod, "DeletionByPodGC", "PodGC: node no longer exists", grace_s=0)
            await asyncio.sleep(0)
