"""All players together: which of them run, on what they look, and their one endpoint."""

import asyncio
import ssl
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.kubernetes.players.api import Api
from tests.kubernetes.players.control import Control
from tests.kubernetes.players.controllers.accounts import AccountController
from tests.kubernetes.players.controllers.claims import ClaimController
from tests.kubernetes.players.controllers.collector import COLLECTED, Collector
from tests.kubernetes.players.controllers.lifecycle import NodeLifecycle
from tests.kubernetes.players.controllers.marks import Members
from tests.kubernetes.players.controllers.policies import PolicyController
from tests.kubernetes.players.controllers.pools import PoolController
from tests.kubernetes.players.controllers.sandboxes import SandboxController
from tests.kubernetes.players.controllers.scheduler import Scheduler
from tests.kubernetes.players.endpoint import Endpoint, listening, serve
from tests.kubernetes.players.events import Recorder
from tests.kubernetes.players.faults import Faults
from tests.kubernetes.players.informer import Informer
from tests.kubernetes.players.kubelet import Kubelet
from tests.kubernetes.players.nodes import Nodes, played_nodes
from tests.kubernetes.players.objects import (
    CLAIMS,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    POOLS,
    SANDBOXES,
    TEMPLATES,
    Obj,
    Resource,
)
from tests.kubernetes.players.real.host import Host, unable
from tests.kubernetes.players.real.run import RealRun

CONTROLLERS = (
    "scheduler", "collector", "lifecycle", "accounts", "sandboxes", "pools", "claims", "policies",
)  # fmt: skip
"""What `--without` may name."""


@dataclass(frozen=True)
class Settings:
    nodes: dict[str, int] = field(default_factory=lambda: {"real": 1, "simulated": 1})
    """`real` and `simulated` -> how many; at most one real one."""
    without: frozenset[str] = frozenset()
    host: str = "127.0.0.1"
    port: int = 0
    """Of the nodes' endpoint and the control; 0 takes a free one."""
    tls: ssl.SSLContext | None = None
    """For servers that speak nothing else to nodes."""
    in_images: dict[str, str] = field(default_factory=dict)
    """What real Pods' images have beside /usr: path inside -> path of this machine."""
    start_s: float = 0.0
    """Seconds that every Pod takes to start."""
    heartbeat_s: float = 10.0
    node_grace_s: float = 40.0
    """A node whose Lease is older is lost."""


class Stage:
    def __init__(self, api: Api, settings: Settings) -> None:
        self._api, self._settings = api, settings
        self._informers: dict[Resource, Informer] = {}
        self._runs: list[Callable[[], Coroutine[Any, Any, None]]] = []

    def informer(self, resource: Resource) -> Informer:
        if resource not in self._informers:
            self._informers[resource] = Informer(self._api, resource)
        return self._informers[resource]

    def played(self, name: str) -> bool:
        return name not in self._settings.without

    async def run(self, ready: Callable[[str], None]) -> None:
        """Play until it is cancelled; `ready` gets the control's address once nodes are there."""
        settings, api = self._settings, self._api
        host = self._host() if settings.nodes.get("real") else None
        with listening(settings.host, settings.port) as socket:
            port = socket.getsockname()[1]
            nodes = Nodes(
                api, self.informer(NODES), played_nodes(settings.nodes), port,
                tls=settings.tls is not None, heartbeat_s=settings.heartbeat_s,
            )  # fmt: skip
            faults = Faults(start_s=settings.start_s)

            def real(pod: Obj, number: int, changed: Callable[[], None]) -> RealRun:
                assert host is not None
                return RealRun(host, pod, number, changed)

            kubelet = Kubelet(api, self.informer(PODS), nodes, faults, real)
            lifecycle = self._add_controllers()
            app = web.Application()
            Endpoint(kubelet).add_to(app)
            Control(api, kubelet, faults, lifecycle).add_to(app)
            runner = await serve(app, socket, settings.tls)
            await nodes.register()
            self._runs += [kubelet.run, nodes.run, *([] if host is None else [host.run])]
            address = f"{'http' if settings.tls is None else 'https'}://{settings.host}:{port}"
            try:
                await self._play(lambda: ready(address))
            finally:
                await kubelet.close()
                await runner.cleanup()
                if host is not None:
                    host.close()

    async def _play(self, ready: Callable[[], None]) -> None:
        runs = [*self._runs, *(each.run for each in self._informers.values())]
        async with asyncio.TaskGroup() as group:
            for run in runs:
                group.create_task(run())
            await self.informer(PODS).synced.wait()
            ready()

    def _host(self) -> Host:
        if (why := unable()) is not None:
            raise ValueError(f"{why}; leave the real node out with --nodes simulated=1")
        return Host(self._api, Recorder(self._api, "kubelet"), self._settings.in_images)

    def _add_controllers(self) -> NodeLifecycle | None:
        api, of = self._api, self.informer
        lifecycle = None
        if self.played("lifecycle"):
            grace_s = self._settings.node_grace_s
            lifecycle = NodeLifecycle(api, of(PODS), of(NODES), of(LEASES), grace_s)
            self._runs.append(lifecycle.run)
        if self.played("scheduler"):
            self._runs.append(Scheduler(api, of(PODS), of(NODES)).run)
        if self.played("accounts"):
            self._runs.append(AccountController(api, of(NAMESPACES)).run)
        if self.played("sandboxes"):
            self._runs.append(SandboxController(api, of(SANDBOXES), of(PODS)).run)
        if self.played("pools") or self.played("claims"):
            members = Members(of(SANDBOXES))
            if self.played("pools"):
                pools = PoolController(api, of(POOLS), of(TEMPLATES), of(SANDBOXES), members)
                self._runs.append(pools.run)
            if self.played("claims"):
                claims = ClaimController(
                    api, of(CLAIMS), of(POOLS), of(TEMPLATES), of(SANDBOXES), members
                )
                self._runs.append(claims.run)
        if self.played("policies"):
            self._runs.append(PolicyController(api, of(TEMPLATES)).run)
        if self.played("collector"):
            for resource in COLLECTED:
                of(resource)
            self._runs.append(Collector(api, self._informers).run)
        return lifecycle
