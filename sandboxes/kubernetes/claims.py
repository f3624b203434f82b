"""Sandboxes as claims of agent-sandbox: a warm pool for each template in use, a claim for each
sandbox.

Nothing of a sandbox's own is in its claim but its name: environment variables there would make the
cluster start a Pod anew instead of giving a warm one. What differs travels over the stream.
"""

import asyncio
import itertools
import logging
from collections import OrderedDict
from dataclasses import dataclass
from typing import NamedTuple

from sandboxes.core.body import BackpressureError, InfrastructureError
from sandboxes.kubernetes import causes, manifests
from sandboxes.kubernetes.names import LINGER, SANDBOX, TEMPLATE, TOKEN
from sandboxes.kubernetes.session import PoolOrder, Session
from sandboxes.kubernetes.states import ClaimState, PodState

log = logging.getLogger(__name__)

LOOK_S = 2.0
"""While a claim is not ready, between two looks at the Pod behind it."""

STUCK_S = 10.0
"""A claim that has waited so long is told why Pods of its pool do not start."""

SHOWN_S = 30.0
"""For the watch of Pods to show what that of claims has shown."""


class Placed(NamedTuple):
    """Where a sandbox is."""

    name: str
    key: str
    """Of its Pod, in the session's watch."""
    pod: str
    uid: str
    """Of the Pod: another one of the same name is another sandbox."""
    token: str


@dataclass
class WarmPool:
    name: str
    made: asyncio.Task[None]
    spares: int
    """Pods kept ready in it."""
    waiting: int = 0
    """Claims on their way to it."""


class Claims:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._pools: OrderedDict[str, WarmPool] = OrderedDict()
        """In the order of their last use."""
        self._taken: dict[str, str] = {}
        """Uid of a Pod -> the claim that got it."""
        self._numbers = itertools.count(1)

    async def place(self, order: PoolOrder, token: str) -> Placed:
        """A claim of a ready Pod. InfrastructureError where none became ready; BackpressureError
        where there was no room for it."""
        session, name = self._session, self._session.next_name()
        pool = self._pool(order)
        pool.waiting += 1
        try:
            await asyncio.shield(pool.made)
            annotations = {
                TOKEN: token,
                TEMPLATE: manifests.described(order.template),
                LINGER: f"{session.maker.linger_s(order.template):g}",
            }
            metadata = session.metadata(order.pool, **annotations)
            metadata["labels"] |= {SANDBOX: name}
            made = manifests.claim(name, metadata, pool.name, session.shutdown_time())
            try:
                await session.connection.create(session.folders.claims, made, paced=True)
                session.counts["claimed"] += 1
                key = await self._granted(order, name)
                state = await self._pod(key, name)
            except BaseException:
                session.background(self.remove(name), removes=True)
                raise
        finally:
            pool.waiting -= 1
        if (other := self._taken.get(state.uid)) is not None and other != name:
            session.counts["duplicate_claims"] += 1
            session.background(self.let_go(name), removes=True)
            raise InfrastructureError(
                "duplicate_claim", f"claim {name} got Pod {state.name}, which claim {other} has"
            )
        self._taken[state.uid] = name
        return Placed(name, key, state.name, state.uid, token)

    async def _granted(self, order: PoolOrder, name: str) -> str:
        """The Sandbox that a claim got, once that is ready."""
        session, claims = self._session, self._session.claims
        assert claims is not None
        loop = asyncio.get_running_loop()
        begun, warned = loop.time(), False
        while True:
            found = await claims.until(name, settled, within_s=LOOK_S)
            session.check()
            if found is not None:
                if found.ready and found.sandbox and not found.deleted:
                    return found.sandbox
                raise InfrastructureError("claim", f"claim {name} failed: {found.problem}")
            state = claims.objects.get(name)
            pod = session.pods.objects.get((state and state.sandbox) or name)
            late = loop.time() - begun > STUCK_S
            if cause := trouble(pod) or (session.stuck.get(order.pool) if late else None):
                raise InfrastructureError(cause.reason, cause.detail)
            if pod is not None and pod.unschedulable is not None and not warned:
                session.counts["waited_unschedulable"] += 1
                warned = True
            within_s = session.settings.ready_s
            if loop.time() - begun > within_s:
                said = pod.unschedulable if pod else None
                problem = (state.problem if state else None) or "nothing is told of it"
                told = f"claim {name} ({problem})"
                if "exceeded quota" in problem:
                    raise BackpressureError("quota", f"a quota is used up, for {told}")
                raise causes.late(within_s, said, told)

    async def _pod(self, key: str, name: str) -> PodState:
        found = await self._session.pods.until(key, settled_pod, within_s=SHOWN_S)
        if found is None:
            raise InfrastructureError("slow", f"the Pod of claim {name} is not shown as running")
        if found.over is not None:
            raise found.over.before_use
        return found

    def _pool(self, order: PoolOrder) -> WarmPool:
        """The pool of an order, made if need be."""
        if (found := self._pools.get(order.pool)) is not None:
            made = found.made
            if not made.done() or not (made.cancelled() or made.exception()):
                self._pools.move_to_end(order.pool)
                return found
        # a name of its own each time: one that was given up may still be on its way out
        name = f"synth-{self._session.owner.name}-{order.pool}-{next(self._numbers)}"
        task = asyncio.get_running_loop().create_task(self._make(order, name))
        spares = self._session.spares(order)
        made = self._pools[order.pool] = WarmPool(name, task, spares)
        self._give_up()
        return made

    async def _make(self, order: PoolOrder, name: str) -> None:
        session = self._session
        labels = session.owner.labels | {"synth.dev/pool": order.pool}
        pod = session.maker.metadata(order.template, labels)
        spec = session.maker.spec(order.template, order.filling)
        template = manifests.sandbox_template(name, session.metadata(order.pool), pod, spec)
        await session.connection.create(session.folders.templates, template)
        spares = session.spares(order)
        pool = manifests.warm_pool(name, session.metadata(order.pool), spares)
        await session.connection.create(session.folders.warm_pools, pool)
        session.counts["pools"] += 1

    def _give_up(self) -> None:
        """Remove pools beyond the number that is kept, those used longest ago first. Pools with
        spare Pods and those without are counted apart: however many candidates are graded, no Pod
        that is worth having ready is given up for them."""
        kept = self._session.settings.warm_templates
        for warm in (True, False):
            pools = [(key, pool) for key, pool in self._pools.items() if (pool.spares > 0) == warm]
            idle = [key for key, pool in pools if not pool.waiting and pool.made.done()]
            for key in idle[: max(0, len(pools) - kept)]:
                self._session.background(self._unmake(self._pools.pop(key).name), removes=True)
                self._session.forget(key)

    async def _unmake(self, name: str) -> None:
        folders = self._session.folders
        for folder in (folders.warm_pools, folders.templates):
            await self._session.connection.delete(f"{folder}/{name}")

    @property
    def folder(self) -> str:
        return self._session.folders.claims

    def mine(self, name: str) -> bool:
        """Whether the watch shows it as this owner's."""
        return self._session.claims is not None and name in self._session.claims.objects

    async def remove(self, name: str) -> bool:
        """The claim, and with it the Sandbox and the Pod that it got. As `Owner.remove`."""
        path = f"{self.folder}/{name}"
        return await self._session.owner.remove(path, propagationPolicy="Background")

    async def let_go(self, name: str) -> None:
        """The claim alone: what it got is another one's."""
        await self._session.connection.delete(f"{self.folder}/{name}", propagationPolicy="Orphan")

    def forget(self, placed: Placed) -> None:
        if self._taken.get(placed.uid) == placed.name:
            del self._taken[placed.uid]

    async def renew(self, name: str) -> None:
        until = {"spec": {"lifecycle": {"shutdownTime": self._session.shutdown_time()}}}
        await self._session.connection.patch(f"{self.folder}/{name}", until)


def settled(state: ClaimState | None) -> ClaimState | None:
    """The claim once it has what it wants, or never will."""
    if state is None:
        return None
    return state if (state.ready and state.sandbox) or state.refused or state.deleted else None


def settled_pod(state: PodState | None) -> PodState | None:
    return state if state is not None and (state.runs or state.over is not None) else None


def trouble(state: PodState | None) -> causes.EndCause | None:
    """Why a Pod will not be ready."""
    return None if state is None else state.over or state.hopeless
