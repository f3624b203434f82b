"""The nodes as objects: registered, kept alive by a Lease and a condition, and as they may be lost.

One `real` node runs Pods in bubblewrap; simulated ones carry a taint, so that nothing comes there
that does not say so.
"""

import asyncio
import logging
import platform
from collections.abc import Iterable
from typing import NamedTuple

from tests.kubernetes.players.api import Api, ApiError
from tests.kubernetes.players.informer import Informer
from tests.kubernetes.players.objects import (
    LEASES,
    NAMESPACES,
    NODES,
    PLAYED,
    Obj,
    is_true,
    now,
    now_micro,
)

log = logging.getLogger("players")

LEASE_NAMESPACE = "kube-node-lease"
LEASE_S = 40
SCHEME = "synth.dev/kubelet-scheme"
"""Annotation that tells a double to speak plain HTTP to the node."""

CAPACITY = {
    "real": {"cpu": "1024", "memory": "2Ti", "ephemeral-storage": "4Ti", "pods": "256"},
    "simulated": {"cpu": "4096", "memory": "8Ti", "ephemeral-storage": "8Ti", "pods": "512"},
}
"""What the nodes say they have. It is no measure of this machine: Pods' limits are, one by one."""

HEALTH = {
    "MemoryPressure": ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    "DiskPressure": ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    "PIDPressure": ("KubeletHasSufficientPID", "kubelet has sufficient PID available"),
}


class PlayedNode(NamedTuple):
    name: str
    kind: str
    """`real` or `simulated`."""
    number: int

    @property
    def simulated(self) -> bool:
        return self.kind == "simulated"


def played_nodes(counts: dict[str, int]) -> list[PlayedNode]:
    made: list[PlayedNode] = []
    for kind, count in counts.items():
        made += [PlayedNode(f"played-{kind}-{i}", kind, len(made) + i) for i in range(count)]
    return made


class Nodes:
    """Keeps the objects of nodes; `silent` are those that tell nothing any more."""

    def __init__(
        self,
        api: Api,
        known: Informer,
        nodes: Iterable[PlayedNode],
        port: int,
        *,
        tls: bool,
        heartbeat_s: float,
    ) -> None:
        """`known` are the nodes as the API has them."""
        self._known = known
        self._api, self._port, self._tls, self._heartbeat_s = api, port, tls, heartbeat_s
        self.by_name = {node.name: node for node in nodes}
        self.silent: set[str] = set()

    async def register(self) -> None:
        try:
            await self._api.create(NAMESPACES, None, {"metadata": {"name": LEASE_NAMESPACE}})
        except ApiError as error:
            if error.status != 409:
                raise
        for node in self.by_name.values():
            await self._register(node)

    async def _register(self, node: PlayedNode) -> None:
        body = self.body(node)
        try:
            await self._api.create(NODES, None, body)
        except ApiError as error:
            if error.status != 409:
                raise
            change = {"metadata": body["metadata"], "spec": {"taints": None, **body["spec"]}}
            await self._api.patch(NODES, None, node.name, change)
        await self._renew(node)
        await self.tell_status(node)

    def body(self, node: PlayedNode) -> Obj:
        taint = {"key": PLAYED, "value": node.kind, "effect": "NoSchedule"}
        labels = {
            "kubernetes.io/hostname": node.name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": arch(),
            PLAYED: node.kind,
        }
        annotations = {} if self._tls else {SCHEME: "http"}
        return {
            "metadata": {"name": node.name, "labels": labels, "annotations": annotations},
            "spec": {"taints": [taint]} if node.simulated else {},
        }

    async def tell_status(self, node: PlayedNode) -> None:
        time = now()
        conditions = [
            {
                "type": kind,
                "status": "False",
                "reason": reason,
                "message": message,
                "lastHeartbeatTime": time,
                "lastTransitionTime": time,
            }
            for kind, (reason, message) in HEALTH.items()
        ]
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "message": "kubelet is posting ready status",
            "lastHeartbeatTime": time,
            "lastTransitionTime": time,
        }
        status = {
            "capacity": CAPACITY[node.kind],
            "allocatable": CAPACITY[node.kind],
            "addresses": [
                {"type": "InternalIP", "address": "127.0.0.1"},
                {"type": "Hostname", "address": node.name},
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self._port}},
            "conditions": [*conditions, ready],
            "nodeInfo": info(node),
        }
        await self._api.patch(NODES, None, node.name, {"status": status}, subresource="status")

    async def _renew(self, node: PlayedNode) -> None:
        spec = {
            "holderIdentity": node.name,
            "leaseDurationSeconds": LEASE_S,
            "renewTime": now_micro(),
        }
        try:
            await self._api.patch(LEASES, LEASE_NAMESPACE, node.name, {"spec": spec})
        except ApiError as error:
            if error.status != 404:
                raise
            body = {"metadata": {"name": node.name}, "spec": spec}
            await self._api.create(LEASES, LEASE_NAMESPACE, body)

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self._heartbeat_s)
            for node in list(self.by_name.values()):
                if node.name not in self.silent:
                    try:
                        await self._renew(node)
                        if (known := self._known.get(node.name)) and not is_true(known, "Ready"):
                            await self.tell_status(node)
                    except ApiError as error:
                        log.debug("heartbeat of %s: %s", node.name, error)

    async def come_back(self, name: str) -> None:
        """A node that was lost tells of itself again; the lifecycle controller takes the taints."""
        self.silent.discard(name)
        await self._register(self.by_name[name])


def arch() -> str:
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())


def info(node: PlayedNode) -> Obj:
    return {
        "machineID": node.name,
        "systemUUID": node.name,
        "bootID": node.name,
        "kernelVersion": platform.release(),
        "osImage": f"played by the tests ({node.kind})",
        "containerRuntimeVersion": "bubblewrap://0" if not node.simulated else "none://0",
        "kubeletVersion": "v1.32.0",
        "kubeProxyVersion": "",
        "operatingSystem": "linux",
        "architecture": arch(),
    }
