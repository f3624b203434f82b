"""Sandboxes kept warm: a lease gets one that is proved clean, or a fresh one.

    async with Pool() as pool:
        async with pool.lease(template) as sandbox:
            await sandbox.exec(["python3", "-c", "print(1)"])

Leaving a lease costs its holder nothing: the pool recycles the sandbox in the background where its
backend can prove it to be as it was before its first use, and destroys what is not proved clean. At
most `live` sandboxes exist, lent, idle and being cleaned together; who asks first is served first.
A pool belongs to the event loop that opened it. Every lease and sandbox is accounted for
(`sandboxes.lending.accounts`). That a sandbox is lost, hangs or does not start is always a
TransientError, never something that the program inside did; what that did is `ProgramEndedError`.
"""

import asyncio
import contextlib
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from records.errors import ItemError, TransientError
from sandboxes.core.backend import Backend, Capability
from sandboxes.core.body import Snapshot
from sandboxes.core.sandbox import Sandbox
from sandboxes.core.template import SandboxTemplate
from sandboxes.lending import leases
from sandboxes.lending.accounts import Accounts, Death, Ending
from sandboxes.lending.capacity import PoolSettings

log = logging.getLogger(__name__)

CLEANING_S = 10.0
"""For killing and wiping; one that takes longer is destroyed."""

HEALTH_S = 5.0
"""For an idle sandbox to answer before it is lent."""

START_TRIES = 3


@dataclass(eq=False)
class _Lease:
    sandbox: Sandbox
    template: SandboxTemplate
    reusable: bool
    over: Ending | None = None
    """Why it ended before its holder left."""


class Pool:
    """Lends sandboxes of a backend, by default the one in use; `async with` it."""

    def __init__(
        self, settings: PoolSettings | None = None, *, backend: Backend | None = None
    ) -> None:
        self.settings = settings or PoolSettings()
        self.accounts = Accounts()
        self._backend = backend or leases.backend()
        self._recycles = Capability.RECYCLING in self._backend.capabilities
        self._slots = asyncio.Semaphore(self.settings.live)
        self._used = 0
        """Slots taken: leases, starts and cleanings. Slots and idle ones together are `live`."""
        self._starting = asyncio.Semaphore(self.settings.starts_at_once)
        self._next_start = 0.0
        self._idle: defaultdict[str, list[Sandbox]] = defaultdict(list)
        self._minimum: dict[str, tuple[SandboxTemplate, int]] = {}
        self._leases: set[_Lease] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    @asynccontextmanager
    async def lease(
        self,
        template: SandboxTemplate,
        *,
        snapshot: Snapshot | None = None,
        lease_s: float | None = None,
    ) -> AsyncIterator[Sandbox]:
        """A clean sandbox of `template`, or a fork of `snapshot`, for at most `lease_s` seconds.

        Waits while `live` are in use. TransientError when none could be started, and from the
        sandbox once the lease has run out; ConfigError where none can run.
        """
        lease = await self._granted(template, snapshot)
        sandbox, seconds = lease.sandbox, lease_s or self.settings.lease_s
        timer = asyncio.get_running_loop().call_later(
            seconds, self._cut, lease, "expired", f"the lease ran out after {seconds:g} s"
        )
        try:
            yield sandbox
        finally:
            timer.cancel()
            lease.sandbox = sandbox.renewed()
            self._leave(lease)

    async def warm(self, template: SandboxTemplate, count: int) -> None:
        """Have `count` idle ones of `template` ready, as far as slots are free, now and from now
        on. TransientError where they do not start."""
        self._minimum[key_of(template)] = template, count
        await self._fill(key_of(template))

    async def settled(self) -> None:
        """Return once what was given back is cleaned, destroyed or replaced."""
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _granted(self, template: SandboxTemplate, snapshot: Snapshot | None) -> _Lease:
        accounts = self.accounts
        accounts.asked += 1
        accounts.waiting += 1
        try:
            async with self._slot() as slot:
                sandbox = await self._clean_one(template, snapshot)
                slot.pop_all()  # kept by the lease
        except asyncio.CancelledError:
            accounts.given_up += 1
            raise
        except BaseException:
            accounts.refused += 1
            raise
        finally:
            accounts.waiting -= 1
        accounts.held += 1
        reusable = self._recycles and template.recycle and snapshot is None
        lease = _Lease(sandbox, template, reusable)
        self._leases.add(lease)
        return lease

    @asynccontextmanager
    async def _slot(self) -> AsyncIterator[contextlib.ExitStack]:
        """A slot, free again at the end unless the stack was emptied."""
        await self._slots.acquire()
        self._used += 1
        with contextlib.ExitStack() as stack:
            stack.callback(self._free)
            if self._closed:
                raise TransientError("the pool of sandboxes was closed")
            yield stack

    def _free(self) -> None:
        self._used -= 1
        self._slots.release()

    async def _clean_one(self, template: SandboxTemplate, snapshot: Snapshot | None) -> Sandbox:
        idle = self._idle[key_of(template)] if snapshot is None else []
        while idle:
            sandbox = idle.pop()
            try:
                if await healthy(sandbox):
                    return sandbox
            except BaseException:  # cancelled: it is neither idle nor lent
                self._background(self._destroy(sandbox, "closed"))
                raise
            await self._destroy(sandbox, "unhealthy")
        return await self._started(template, snapshot)

    async def _started(self, template: SandboxTemplate, snapshot: Snapshot | None) -> Sandbox:
        """A fresh one; in a slot, which is its room once the oldest idle ones have made it."""
        while self._used + sum(map(len, self._idle.values())) > self.settings.live:
            oldest = next(key for key, idle in self._idle.items() if idle)
            await self._destroy(self._idle[oldest].pop(0), "evicted")
        problem: TransientError | None = None
        for attempt in range(START_TRIES):
            await self._paced(attempt)
            self.accounts.starts += 1
            try:
                async with self._starting:
                    sandbox = await self._backend.create(template, snapshot)
            except BaseException as error:
                self.accounts.failed_starts += 1
                if not isinstance(error, TransientError):
                    raise
                problem = error
                continue
            self.accounts.alive += 1
            try:
                if self._recycles:
                    await sandbox.remember()
            except TransientError as error:
                problem = error
                await self._destroy(sandbox, "lost")
            except BaseException:
                await self._destroy(sandbox, "lost")
                raise
            else:
                return sandbox
        raise TransientError(f"{START_TRIES} starts failed, the last one: {problem}") from problem

    async def _paced(self, attempt: int) -> None:
        """Wait for this start's turn; after a failure a little longer."""
        now = asyncio.get_running_loop().time()
        turn = max(now, self._next_start)
        self._next_start = turn + 1 / self.settings.starts_per_s
        await asyncio.sleep(turn - now + (0.05 * 2**attempt if attempt else 0))

    def _cut(self, lease: _Lease, ending: Ending, why: str) -> None:
        """End a lease's sandbox under its holder."""
        lease.over = lease.over or ending
        lease.sandbox.end(why)

    def _leave(self, lease: _Lease) -> None:
        """The holder left, or the pool closes: what is left to do is done in the background."""
        if lease in self._leases:
            self._leases.remove(lease)
            self.accounts.held -= 1
            self.accounts.cleaning += 1
            self._background(self._take_back(lease))

    def _background(self, work: Awaitable[None]) -> None:
        async def run() -> None:
            await work

        task = asyncio.get_running_loop().create_task(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _take_back(self, lease: _Lease) -> None:
        key, sandbox = key_of(lease.template), lease.sandbox
        try:
            ending = lease.over or await self._cleaned(lease)
            if ending == "clean" and (self._closed or len(self._idle[key]) >= self.settings.idle):
                ending = "closed" if self._closed else "replaced"
            if ending == "clean":
                self._idle[key].append(sandbox)
            else:
                await self._destroy(sandbox, ending)
            self.accounts.endings[ending] += 1
        finally:
            self.accounts.cleaning -= 1
            self._free()
        if ending != "clean" and key in self._minimum and not self._closed:
            with contextlib.suppress(TransientError):  # the next lease tries again, and says so
                await self._fill(key)

    async def _cleaned(self, lease: _Lease) -> Ending:
        """Wipe the sandbox and compare it with what it was."""
        if not lease.reusable:
            return "replaced"
        try:
            async with asyncio.timeout(CLEANING_S):
                left = await lease.sandbox.recycle()
        except (TransientError, ItemError, TimeoutError) as error:
            log.info("a lent sandbox was lost: %s", error or "not cleaned in time")
            return "lost"
        self.accounts.differences.update(left)
        return "dirty" if left else "clean"

    async def _destroy(self, sandbox: Sandbox, death: Death) -> None:
        """Shielded: a sandbox half closed would be on nobody's account."""

        async def close() -> None:
            try:
                await sandbox.close()
            except OSError as error:  # a busy control group, which is left to the reaper
                log.warning("a sandbox was not removed altogether: %s", error)
            self.accounts.alive -= 1
            self.accounts.deaths[death] += 1

        self._background(done := asyncio.ensure_future(close()))
        await asyncio.shield(done)

    async def _fill(self, key: str) -> None:
        template, count = self._minimum[key]
        while len(self._idle[key]) < count and not self._closed and not self._slots.locked():
            if self._used + sum(map(len, self._idle.values())) >= self.settings.live:
                return  # others' idle ones are as good a use of the room
            async with self._slot():
                self._idle[key].append(await self._started(template, None))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End every sandbox, lent ones under their holders, and wait until all are gone."""
        self._closed = True
        for lease in list(self._leases):
            self._cut(lease, "closed", "the pool of sandboxes was closed")
            self._leave(lease)
        for idle in self._idle.values():
            while idle:
                self._background(self._destroy(idle.pop(), "closed"))
        await self.settled()
        self.accounts.check()


def key_of(template: SandboxTemplate) -> str:
    return template.model_dump_json()


async def healthy(sandbox: Sandbox) -> bool:
    try:
        async with asyncio.timeout(HEALTH_S):
            await sandbox.ping()
    except (TransientError, ItemError, TimeoutError):
        return False
    return True
