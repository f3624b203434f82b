"""Sandboxes as plain Pods, on clusters without agent-sandbox: each is a Pod of its owner's own.

An owner keeps some ready for each template and lends none of another owner's: that, and their
deletion with their owner's Lease, is all that is done here of what agent-sandbox does.
"""

import asyncio
from collections import OrderedDict, deque

from records.errors import TransientError
from sandboxes.core.body import BackpressureError, InfrastructureError
from sandboxes.kubernetes import causes
from sandboxes.kubernetes.api.connection import JSON_PATCH, ApiObject
from sandboxes.kubernetes.claims import LOOK_S, Placed, settled_pod, trouble
from sandboxes.kubernetes.names import SANDBOX, TOKEN
from sandboxes.kubernetes.session import PoolOrder, Session
from sandboxes.kubernetes.states import PodState

QUOTA_AGAIN_S = 1.0
"""Between two tries to make a Pod for which a quota has no room."""


class PlainPods:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._idle: OrderedDict[str, deque[PodState]] = OrderedDict()
        """Pool -> its ready Pods; in the order of their last use."""
        self._coming: dict[str, int] = {}

    @property
    def folder(self) -> str:
        return self._session.folders.pods

    async def place(self, order: PoolOrder, token: str) -> Placed:
        """A ready Pod of the pool, or a new one. Errors as those of `Claims.place`."""
        placed = await self._idle_one(order, token) if self._session.spares(order) else None
        if placed is None:
            state = await self._started(order, token)
            placed = Placed(state.name, state.name, state.name, state.uid, token)
        if self._session.spares(order):
            self._session.background(self._fill(order))
        self._session.counts["claimed"] += 1
        return placed

    async def _idle_one(self, order: PoolOrder, token: str) -> Placed | None:
        """A ready Pod of the pool, given to who asks; None where there is none."""
        idle = self._idle.setdefault(order.pool, deque())
        self._idle.move_to_end(order.pool)
        placed = None
        while placed is None and idle:
            placed = await self._taken(idle.popleft(), token)
        return placed

    async def _taken(self, state: PodState, token: str) -> Placed | None:
        """A ready Pod, given to who asks; None where it is over by now."""
        now = self._session.pods.objects.get(state.name)
        if now is None or now.uid != state.uid or not now.runs or now.over is not None:
            await self.remove(state.name)
            return None
        changes = [
            {"op": "test", "path": "/metadata/uid", "value": state.uid},
            {"op": "add", "path": pointer("labels", SANDBOX), "value": state.name},
            {"op": "add", "path": pointer("annotations", TOKEN), "value": token},
        ]
        path = f"{self.folder}/{state.name}"
        try:
            found = await self._session.connection.patch(path, changes, content=JSON_PATCH)
        except BaseException:  # it may be lent or not: nobody has it
            self._session.background(self.remove(state.name), removes=True)
            raise
        if found is None:
            return None
        return Placed(state.name, state.name, state.name, state.uid, token)

    async def _started(self, order: PoolOrder, token: str | None) -> PodState:
        """A new Pod, once it runs; with a token it is a sandbox at once."""
        session, name = self._session, self._session.next_name()
        labels = session.owner.labels | {"synth.dev/pool": order.pool}
        metadata = session.maker.metadata(order.template, labels)
        if token is not None:
            metadata["labels"] |= {SANDBOX: name}
            metadata["annotations"] |= {TOKEN: token}
        metadata |= {"name": name, "ownerReferences": session.owner.references}
        spec = session.maker.spec(order.template, order.filling)
        made = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        try:
            await self._created(made)
            return await self._ready(name)
        except BaseException:
            session.background(self.remove(name), removes=True)
            raise

    async def _created(self, made: ApiObject) -> None:
        """Once the quotas of the namespace have room for it. BackpressureError where they have none
        in the time that a Pod has to be ready."""
        session, loop = self._session, asyncio.get_running_loop()
        end, waited = loop.time() + session.settings.ready_s, False
        while True:
            try:
                await session.connection.create(self.folder, made, paced=True)
                return
            except BackpressureError as error:
                if error.reason != "quota" or loop.time() + QUOTA_AGAIN_S > end:
                    raise
            session.counts["waited_quota"] += not waited
            waited = True
            await asyncio.sleep(QUOTA_AGAIN_S)

    async def _ready(self, name: str) -> PodState:
        session, loop = self._session, asyncio.get_running_loop()
        begun, warned = loop.time(), False
        while True:
            found = await session.pods.until(name, settled_pod, within_s=LOOK_S)
            session.check()
            state = found or session.pods.objects.get(name)
            if problem := trouble(state):
                raise InfrastructureError(problem.reason, problem.detail)
            if found is not None:
                return found
            if state is not None and state.unschedulable is not None and not warned:
                session.counts["waited_unschedulable"] += 1
                warned = True
            within_s = session.settings.ready_s
            if loop.time() - begun > within_s:
                raise causes.late(within_s, state.unschedulable if state else None, f"Pod {name}")

    async def _fill(self, order: PoolOrder) -> None:
        """Have as many ready ones of a pool as it keeps. TransientError where they do not start;
        who asks next tries again."""
        idle = self._idle.get(order.pool)
        if idle is None:
            return
        coming = self._coming.get(order.pool, 0)
        missing = self._session.spares(order) - len(idle) - coming
        if missing <= 0:
            return
        self._coming[order.pool] = coming + missing
        started = [self._start_idle(order) for _ in range(missing)]
        results = await asyncio.gather(*started, return_exceptions=True)
        await self._give_up()
        for result in results:
            if isinstance(result, BaseException):
                raise TransientError(f"no Pod for pool {order.pool}: {result}") from result

    async def _start_idle(self, order: PoolOrder) -> None:
        try:
            state = await self._started(order, None)
            idle = self._idle.get(order.pool)
            if idle is None:  # given up meanwhile
                await self.remove(state.name)
            else:
                idle.append(state)
        finally:
            self._coming[order.pool] -= 1

    async def _give_up(self) -> None:
        while len(self._idle) > self._session.settings.warm_templates:
            pool, idle = self._idle.popitem(last=False)
            self._session.forget(pool)
            for state in idle:
                await self.remove(state.name)

    def mine(self, name: str) -> bool:
        """Whether the watch shows it as this owner's."""
        return name in self._session.pods.objects

    async def remove(self, name: str) -> bool:
        """As `Owner.remove`."""
        return await self._session.owner.remove(f"{self.folder}/{name}")

    async def let_go(self, name: str) -> None:
        """A Pod is never two sandboxes'; what answers another one is of no use."""
        await self.remove(name)

    def forget(self, placed: Placed) -> None:
        """Nothing is kept of it."""

    async def renew(self, name: str) -> None:
        """A Pod's own deadline cannot be moved."""


def pointer(where: str, name: str) -> str:
    """A JSON pointer to a label or annotation."""
    return f"/metadata/{where}/{name.replace('~', '~0').replace('/', '~1')}"
