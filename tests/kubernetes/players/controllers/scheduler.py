"""The scheduler: a node for every Pod that has none, or the reason why there is none.

It filters by cordon, taints, node selector and affinity by labels, and requests against what is
left of a node, in kube-scheduler's order and words; of the nodes that are left it takes the one
with the fewest Pods. Pods that are labelled to be simulated tolerate the taint of simulated nodes,
as if an admission plugin had said so, and go there first.
"""

import asyncio
from collections import Counter
from decimal import Decimal

from tests.kubernetes.players.api import Api, ApiError, gone
from tests.kubernetes.players.events import Recorder
from tests.kubernetes.players.informer import Informer
from tests.kubernetes.players.objects import (
    PLAYED,
    PODS,
    Obj,
    condition_of,
    deleting,
    finished,
    key_of,
    labels_of,
    split,
    uid_of,
    with_condition,
)
from tests.kubernetes.players.quantities import NOTHING, Amounts, amounts, requests_of
from tests.kubernetes.players.work import WorkQueue

NAME = "default-scheduler"
SETTLE_S, AGAIN_S = 0.1, 10.0
"""Before Pods that found no place are tried again: after something was freed, and in any case."""

AFFINITY = "node(s) didn't match Pod's node affinity/selector"


class Scheduler:
    def __init__(self, api: Api, pods: Informer, nodes: Informer) -> None:
        self._api, self._pods, self._nodes = api, pods, nodes
        self._used: dict[str, Amounts] = {}
        """What is reserved on each node."""
        self._placed: dict[str, tuple[str, Amounts]] = {}
        """Pod's uid -> its node and what it reserves there, from the moment of the decision."""
        self._rooms: dict[str, tuple[str, Amounts]] = {}
        """Node -> its version, and what it has."""
        self._without: set[str] = set()
        self._settling: asyncio.TimerHandle | None = None
        self._events = Recorder(api, NAME)
        self.queue = WorkQueue(self._look, workers=32)
        pods.on_change(self._pod_changed)
        nodes.on_change(lambda _old, _new: self._try_again())

    async def run(self) -> None:
        await self._nodes.synced.wait()
        await self._pods.synced.wait()
        await self.queue.run()

    def _pod_changed(self, old: Obj | None, new: Obj | None) -> None:
        if new is None or finished(new):
            pod = new or old
            assert pod is not None
            self._release(uid_of(pod))
            self._without.discard(key_of(pod))
        elif node := new["spec"].get("nodeName"):
            self._reserve(new, node)
        elif wants_a_node(new):
            self.queue.add(key_of(new))

    def _reserve(self, pod: Obj, node: str) -> None:
        uid = uid_of(pod)
        if uid in self._placed:
            return
        wanted = requests_of(pod)
        used = self._used.setdefault(node, {})
        for name, value in wanted.items():
            used[name] = used.get(name, NOTHING) + value
        self._placed[uid] = node, wanted

    def _release(self, uid: str) -> None:
        if (placed := self._placed.pop(uid, None)) is None:
            return
        node, wanted = placed
        for name, value in wanted.items():
            self._used[node][name] -= value
        self._try_again()

    def _try_again(self) -> None:
        if self._without and self._settling is None:
            self._settling = asyncio.get_running_loop().call_later(SETTLE_S, self._requeue)

    def _requeue(self) -> None:
        self._settling = None
        waiting, self._without = self._without, set()
        for key in waiting:
            self.queue.add(key)

    async def _look(self, key: str) -> float | None:
        pod = self._pods.get(key)
        if pod is None or not wants_a_node(pod) or uid_of(pod) in self._placed:
            return None
        node, message = self._choose(pod)
        if node is None:
            self._without.add(key)
            await self._unschedulable(pod, message)
            return AGAIN_S
        self._reserve(pod, node)
        namespace, name = split(key)
        body = {
            "metadata": {"name": name, "uid": uid_of(pod)},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        try:
            await self._api.create(
                PODS._replace(kind="Binding"), namespace, body, name=name, subresource="binding"
            )
        except ApiError as error:
            self._release(uid_of(pod))
            if not gone(error):
                raise
        return None

    def _choose(self, pod: Obj) -> tuple[str | None, str]:
        """A node, or none and why, as kube-scheduler words it."""
        wanted, reasons, helpful = requests_of(pod), Counter[str](), 0
        simulated = labels_of(pod).get(PLAYED) == "simulated"
        best: tuple[bool, Decimal, str] | None = None
        nodes = list(self._nodes)
        for node in nodes:
            name = node["metadata"]["name"]
            used = self._used.get(name, {})
            if why := unfit(pod, node, simulated):
                reasons[why] += 1
            elif short := lacking(wanted, self._room(node), used):
                reasons.update(short)
                helpful += 1
            else:
                elsewhere = simulated != (labels_of(node).get(PLAYED) == "simulated")
                rank = (elsewhere, used.get("pods", NOTHING), name)
                best = rank if best is None else min(best, rank)
        if best is not None:
            return best[2], ""
        return None, sentence(len(nodes), reasons, helpful)

    def _room(self, node: Obj) -> Amounts:
        meta = node["metadata"]
        version, room = self._rooms.get(meta["name"], ("", {}))
        if version != meta["resourceVersion"]:
            room = room_of(node)
            self._rooms[meta["name"]] = meta["resourceVersion"], room
        return room

    async def _unschedulable(self, pod: Obj, message: str) -> None:
        old = condition_of(pod, "PodScheduled")
        if old is not None and old.get("message") == message:
            return
        new = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        conditions = (pod.get("status") or {}).get("conditions") or []
        conditions = with_condition(conditions, new | {"message": message})
        meta = pod["metadata"]
        body = {"metadata": {"uid": uid_of(pod)}, "status": {"conditions": conditions}}
        self._events.warn(pod, "FailedScheduling", message)
        await self._api.patch(PODS, meta["namespace"], meta["name"], body, subresource="status")


def wants_a_node(pod: Obj) -> bool:
    spec = pod["spec"]
    return (
        not spec.get("nodeName")
        and not deleting(pod)
        and not finished(pod)
        and not spec.get("schedulingGates")
        and spec.get("schedulerName", NAME) == NAME
    )


def unfit(pod: Obj, node: Obj, simulated: bool) -> str:
    """Why a Pod may not go there whatever it asks for; empty where it may."""
    spec, tolerations = node.get("spec") or {}, pod["spec"].get("tolerations") or []
    if simulated:
        tolerations = [*tolerations, {"key": PLAYED, "operator": "Exists"}]
    cordon = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    if spec.get("unschedulable") and not any(tolerates(each, cordon) for each in tolerations):
        return "node(s) were unschedulable"
    for taint in spec.get("taints") or []:
        if taint["effect"] != "PreferNoSchedule" and not any(
            tolerates(each, taint) for each in tolerations
        ):
            return f"node(s) had untolerated taint {{{taint['key']}: {taint.get('value', '')}}}"
    return "" if selected(pod, node) else AFFINITY


def tolerates(toleration: Obj, taint: Obj) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    if toleration.get("key") not in (None, "", taint["key"]):
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return True
    return bool(toleration.get("key")) and toleration.get("value", "") == taint.get("value", "")


def selected(pod: Obj, node: Obj) -> bool:
    labels, spec = labels_of(node), pod["spec"]
    if any(labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    return any(
        all(matches(labels, each) for each in term.get("matchExpressions") or [])
        for term in required["nodeSelectorTerms"]
        if term.get("matchExpressions")
    )


def matches(labels: dict[str, str], expression: Obj) -> bool:
    value, values = labels.get(expression["key"]), expression.get("values") or []
    match expression["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return value is not None and int(value) > int(values[0])
        case "Lt":
            return value is not None and int(value) < int(values[0])
    raise ValueError(f"a node selector has no operator {expression['operator']!r}")


def room_of(node: Obj) -> Amounts:
    return amounts((node.get("status") or {}).get("allocatable"))


def lacking(wanted: Amounts, room: Amounts, used: Amounts) -> list[str]:
    """What a node has too little of."""
    short = [
        name
        for name, value in wanted.items()
        if value and used.get(name, NOTHING) + value > room.get(name, NOTHING)
    ]
    return ["Too many pods" if name == "pods" else f"Insufficient {name}" for name in short]


def sentence(nodes: int, reasons: Counter[str], helpful: int) -> str:
    """`helpful` nodes would have room if something else went, which nothing here does."""
    if not nodes:
        return "no nodes available to schedule pods"
    why = ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))
    preemption = []
    if helpful:
        preemption.append(f"{helpful} No preemption victims found for incoming pod")
    if nodes - helpful:
        preemption.append(f"{nodes - helpful} Preemption is not helpful for scheduling")
    return (
        f"0/{nodes} nodes are available: {why}. "
        f"preemption: 0/{nodes} nodes are available: {', '.join(preemption)}."
    )
