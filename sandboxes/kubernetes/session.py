"""What one event loop holds of a cluster: connection, owner, watches, pools, and who keeps them.

A session begins with the first sandbox that its loop asks for, and ends with the loop, or when its
owner was taken for dead. `asyncio.run` cancels its keeper at its end, which then removes everything
that was not left to be adopted.
"""

import asyncio
import contextlib
import itertools
import logging
from collections import Counter
from collections.abc import Coroutine, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, Protocol, TypeVar

from records.errors import ConfigError, SynthError, TransientError
from sandboxes.core.body import InfrastructureError
from sandboxes.core.template import SandboxTemplate
from sandboxes.kubernetes import cluster as clusters
from sandboxes.kubernetes import manifests, owners, reaper
from sandboxes.kubernetes.api import connection as connections
from sandboxes.kubernetes.api.connection import Connection
from sandboxes.kubernetes.api.watching import WatchedObjects
from sandboxes.kubernetes.causes import EndCause
from sandboxes.kubernetes.cluster import Cluster
from sandboxes.kubernetes.filling import Filling, Fillings
from sandboxes.kubernetes.manifests import PodMaker
from sandboxes.kubernetes.names import Folders, digest_of, selecting
from sandboxes.kubernetes.owners import OtherOwners, Owner
from sandboxes.kubernetes.settings import KubernetesSettings
from sandboxes.kubernetes.states import ClaimState, PodState, claim_state, pod_state
from sandboxes.local.backend import raise_open_files

log = logging.getLogger(__name__)

T = TypeVar("T")

REMOVE_S, LEAVE_S, CEASE_S = 10.0, 10.0, 2.0
"""For a session that ends: for removals that are on their way, for what else it made, and for tasks
to be cancelled. What takes longer is left to other owners' reapers."""

FILL_TRIES = 3


class PoolOrder(NamedTuple):
    """What is asked for, and the pool that has such Pods."""

    template: SandboxTemplate
    filling: Filling | None
    pool: str


class Holder(Protocol):
    """Whoever is told what becomes of a Pod: the sandbox in it."""

    @property
    def lingers(self) -> bool: ...
    @property
    def renewed(self) -> float: ...
    def saw(self, state: PodState | None) -> None: ...
    async def renew(self) -> None: ...


class Session:
    """Made by `begun`."""

    def __init__(
        self, settings: KubernetesSettings, connection: Connection, folders: Folders,
        cluster: Cluster, owner: Owner, maker: PodMaker,
    ) -> None:  # fmt: skip
        self.settings, self.connection, self.folders = settings, connection, folders
        self.cluster, self.owner, self.maker = cluster, owner, maker
        self.fillings = Fillings(
            carry_python=settings.carry_python, kept=settings.warm_templates, needed=self._needed
        )
        mine = selecting(owner=owner.name)
        self.pods: WatchedObjects[PodState] = WatchedObjects(
            connection, folders.pods, mine, pod_state
        )
        self.claims: WatchedObjects[ClaimState] | None = None
        if cluster.claims:
            self.claims = WatchedObjects(connection, folders.claims, mine, claim_state)
        self.streams = asyncio.Semaphore(settings.streams_at_once)
        self.holders: dict[str, Holder] = {}
        """Key of a Pod -> the sandbox in it."""
        self.taken_in: dict[str, Filling] = {}
        """Pool -> what its Pods take in, as long as any may have to be filled. Of its template,
        which may hold whole files, nothing is kept."""
        self._asking: Counter[str] = Counter()
        """Pool -> sandboxes of it on their way."""
        self.stuck: dict[str, EndCause] = {}
        """Pool -> why its Pods do not start, as long as none does."""
        self.counts: Counter[str] = Counter()
        self.over: SynthError | None = None
        """Why it no longer serves."""
        self.others = OtherOwners(connection, folders, every_s=settings.heartbeat_s)
        self._numbers = itertools.count(1)
        self._filling: set[str] = set()
        self._tasks: set[asyncio.Future[Any]] = set()
        self._removals: set[asyncio.Future[Any]] = set()
        self._watches: dict[WatchedObjects[PodState], asyncio.Task[None]] = {}
        self.keeper: asyncio.Task[None] | None = None
        self.pods.tell(self._pod_changed)

    def check(self) -> None:
        """InfrastructureError once it is over: its watches show nothing new then, and its sandboxes
        are nobody's."""
        if self.over is not None:
            raise InfrastructureError("session", f"the sandbox ended: {self.over}")

    def next_name(self) -> str:
        return f"synth-{self.owner.name}-{next(self._numbers)}"

    def metadata(self, pool: str | None = None, **annotations: str) -> dict[str, Any]:
        """Of an object of this owner's."""
        labels = self.owner.labels | ({} if pool is None else {"synth.dev/pool": pool})
        made: dict[str, Any] = {"labels": labels, "ownerReferences": self.owner.references}
        return made | ({"annotations": annotations} if annotations else {})

    async def order(self, template: SandboxTemplate) -> PoolOrder:
        filling = await self.fillings.of(template)
        pool = digest_of(template.model_dump_json(), filling.digest if filling else "")
        return PoolOrder(template, filling, pool)

    @contextlib.contextmanager
    def ordered(self, order: PoolOrder) -> Iterator[None]:
        """Around a sandbox on its way. What its Pod is filled with is known meanwhile; afterwards
        only of pools that keep spare ones, since others are as many as candidates graded."""
        if order.filling is not None:
            self.taken_in[order.pool] = order.filling
        self._asking[order.pool] += 1
        try:
            yield
        finally:
            self._asking[order.pool] -= 1
            if not self._asking[order.pool]:
                del self._asking[order.pool]
                if not self.spares(order):
                    self.taken_in.pop(order.pool, None)

    def forget(self, pool: str) -> None:
        """Of a pool that is given up: its Pods are filled no more, unless somebody asks for it."""
        if not self._asking[pool]:
            self.taken_in.pop(pool, None)

    def _needed(self) -> set[str]:
        """What Pods may have to be filled with; asked from other threads."""
        return {filling.digest for filling in list(self.taken_in.values())}

    def spares(self, order: PoolOrder) -> int:
        """How many Pods of a pool wait ready beside those that are lent."""
        return self.settings.warm if order.template.spares else 0

    def shutdown_time(self) -> str:
        end = datetime.now(UTC) + timedelta(seconds=self.settings.claim_s)
        return end.strftime("%Y-%m-%dT%H:%M:%SZ")

    def background(
        self, work: Coroutine[Any, Any, T], *, removes: bool = False
    ) -> asyncio.Future[T | None]:
        """Do it without anybody waiting; what goes wrong is logged, and its result is None. At the
        session's end removals are waited for and all else is cancelled. Nothing is begun after it:
        then whatever is left is gone with the Lease, or for reapers."""
        loop = asyncio.get_running_loop()
        if self.connection.closed:
            work.close()
            nothing: asyncio.Future[T | None] = loop.create_future()
            nothing.set_result(None)
            return nothing

        async def run() -> T | None:
            try:
                return await work
            except SynthError as error:
                log.warning("sandboxes on Kubernetes: %s", error)
                return None

        task, tasks = loop.create_task(run()), self._removals if removes else self._tasks
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        task.add_done_callback(lambda _: work.close())  # cancelled before it began
        return task

    async def watching(self, pod: str) -> WatchedObjects[PodState]:
        """A watch of one Pod of another owner's pool: controllers keep its labels as they were."""
        query = {"fieldSelector": f"metadata.name={pod}"}
        watched: WatchedObjects[PodState] = WatchedObjects(
            self.connection, self.folders.pods, query, pod_state
        )
        watched.tell(self._pod_changed)
        self._watches[watched] = asyncio.get_running_loop().create_task(watched.run())
        await watched.ready()
        return watched

    def stop_watching(self, watched: WatchedObjects[PodState]) -> None:
        """Where it is one of those."""
        if (task := self._watches.pop(watched, None)) is not None:
            task.cancel()

    def _pod_changed(self, key: str, state: PodState | None) -> None:
        if holder := self.holders.get(key):
            holder.saw(state)
        if state is None:
            return
        if state.runs:
            self.stuck.pop(state.pool, None)
        elif state.hopeless is not None:
            self.stuck[state.pool] = state.hopeless
        if state.fills and state.name not in self._filling and state.over is None:
            filling = self.taken_in.get(state.pool)
            if filling is not None:
                self._filling.add(state.name)
                self.background(self._fill(key, state.name, filling))

    async def _fill(self, key: str, pod: str, filling: Filling) -> None:
        try:
            for attempt in range(FILL_TRIES):
                try:
                    await self.fillings.send(
                        filling, self.connection, self.folders.pods, pod, self.maker.python
                    )
                    self.counts["filled"] += 1
                    return
                except TransientError:
                    self.counts["fill_failed"] += 1
                    state = self.pods.objects.get(key)
                    if state is None or not state.fills:
                        return
                    if attempt + 1 == FILL_TRIES:
                        await self.connection.delete(f"{self.folders.pods}/{pod}")
                        raise
                    await asyncio.sleep(1.0)
        finally:
            self._filling.discard(pod)

    async def _renewing(self) -> None:
        """Give every sandbox more time to live before half of its time is over."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self.settings.heartbeat_s)
            due = loop.time() - self.settings.claim_s / 2
            waiting = [holder for holder in self.holders.values() if holder.renewed < due]
            for result in await asyncio.gather(
                *(holder.renew() for holder in waiting), return_exceptions=True
            ):
                if isinstance(result, BaseException):
                    log.warning("a sandbox could not be renewed: %r", result)

    async def keep(self, ready: asyncio.Event) -> None:
        """Watch, renew and reap until it is cancelled or fails, then leave."""
        watches: list[WatchedObjects[Any]] = [self.pods]
        if self.claims is not None:
            watches.append(self.claims)
        try:
            async with asyncio.TaskGroup() as group:
                for watched in watches:
                    group.create_task(watched.run())
                group.create_task(owners.heartbeat(self.owner, self.settings.heartbeat_s))
                group.create_task(self._renewing())
                group.create_task(reaper.reaping(self, self.settings.heartbeat_s))
                for watched in watches:
                    await watched.ready()
                ready.set()
        except* SynthError as errors:
            first = errors.exceptions[0]
            self.over = first if isinstance(first, SynthError) else None
            log.warning("a session with the cluster is over: %s", self.over)
        finally:
            self.over = self.over or TransientError("the session with the cluster has ended")
            ready.set()
            try:
                await self._finish()
                with contextlib.suppress(Exception):
                    async with asyncio.timeout(LEAVE_S):
                        await self._leave()
            finally:
                await self.connection.close()

    async def _finish(self) -> None:
        """Let removals that are on their way come to their end, for a while; nothing asks the API
        server afterwards."""
        loop = asyncio.get_running_loop()
        end = loop.time() + REMOVE_S
        await cancelled([*self._tasks, *self._watches.values()])  # which may begin removals
        while self._removals and (left_s := end - loop.time()) > 0:
            await asyncio.wait(self._removals, timeout=left_s)
        if self._removals:
            log.info("%d removals of a session are left to reapers", len(self._removals))
        await cancelled(self._removals)

    async def _leave(self) -> None:
        """Remove what was made, but for sandboxes that were left to be adopted: then the Lease
        stays, is not renewed, and whoever finds it dead removes it once they are over."""
        if any(holder.lingers for holder in self.holders.values()):
            await reaper.remove_pools(self.connection, self.folders, self.owner.name)
        else:
            await self.owner.leave()


async def cancelled(tasks: Iterable[asyncio.Future[Any]]) -> None:
    """Returns once they have ended, or take too long for it."""
    if waiting := list(tasks):
        for task in waiting:
            task.cancel()
        await asyncio.wait(waiting, timeout=CEASE_S)


async def agent_map(connection: Connection, folders: Folders) -> str:
    """The name of the agent's ConfigMap, once it is there. ConfigError where that has something
    else in it than its name says: it would be what runs in every sandbox."""
    made = manifests.agent_config_map()
    name = str(made["metadata"]["name"])
    found = await connection.get(f"{folders.config_maps}/{name}")
    if found is None:
        found = await connection.create(folders.config_maps, made)
    if found.get("data") != made["data"]:
        raise ConfigError(
            f"ConfigMap {name} does not hold our agent: somebody has changed it. Look who, then "
            f"remove it (kubectl delete configmap {name}); it is made again"
        )
    return name


async def begun(settings: KubernetesSettings) -> Session:
    """A session whose watches are up. ConfigError where the cluster cannot serve, TransientError
    where it does not answer."""
    raise_open_files()  # a stream for each sandbox
    connection = await connections.opened(
        kubeconfig=settings.kubeconfig, context=settings.context,
        creations_per_s=settings.creations_per_s, burst=settings.creations_burst,
    )  # fmt: skip
    folders = Folders(settings.namespace)
    owner: Owner | None = None
    try:
        cluster = await clusters.probed(connection, folders, settings)
        owner = await owners.entered(connection, folders, dead_s=settings.owner_dead_s)
        agent = await agent_map(connection, folders)
        await clusters.walled(connection, folders, settings)
        maker = PodMaker(settings, cluster, agent)
        session = Session(settings, connection, folders, cluster, owner, maker)
    except BaseException:
        with contextlib.suppress(SynthError):
            if owner is not None:
                await asyncio.shield(owner.leave())
        await connection.close()
        raise
    ready = asyncio.Event()
    session.keeper = asyncio.get_running_loop().create_task(session.keep(ready))
    await ready.wait()
    if session.over is not None:
        raise session.over
    return session
