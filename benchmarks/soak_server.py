"""The endpoint of the soak: a double in a process of its own, with faults by a timetable.

It stands behind a proxy that cuts connections on which nothing comes for a while. Told to `begin`,
it goes through its timetable; told to `end`, it hands over its books.
"""

import asyncio
import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.doubles.catalogue import DOUBLES
from tests.doubles.dressing import Bill
from tests.doubles.faults import Failure, IdleCutter, Outage, RandomFaults
from tests.doubles.quotas import Quota
from tests.doubles.server import DoubleServer

FAULTS: tuple[Failure, ...] = ("500", "reset", "cut", "malformed")
LATENCY_S = 0.5
SILENT_S = 30.0
"""The proxy cuts a connection on which nothing came for so long."""

LONG_S = 40.0
"""How long one answer in `LONG_EVERY` takes."""

LONG_EVERY = 100
SHORTEST_WINDOW_S = 15.0


class Timetable(NamedTuple):
    """Everything in seconds since the beginning. A short soak has everything in short."""

    minutes: float
    fault_rate: float = 0.05
    per_second: float = 20.0
    """Requests that the quota allows, on the average."""

    @property
    def end_s(self) -> float:
        return 60.0 * self.minutes

    @property
    def outages(self) -> tuple[tuple[float, float], ...]:
        """Beginning and end: nobody listens, then every request is answered 503."""
        length_s = 0.15 * self.end_s
        return tuple((at, at + length_s) for at in (0.15 * self.end_s, 0.6 * self.end_s))

    @property
    def headers_from_s(self) -> float:
        """When answers begin to say what is left of the quota."""
        return 0.45 * self.end_s

    @property
    def window_s(self) -> float:
        return max(SHORTEST_WINDOW_S, min(60.0, 3.0 * self.minutes))

    @property
    def requests_per_window(self) -> int:
        return round(self.per_second * self.window_s)

    @property
    def up_s(self) -> float:
        return self.end_s - sum(end - begin for begin, end in self.outages)


@dataclass
class Books:
    """What the server counts. Moments are as of `time.time`."""

    begun: float = 0.0
    outages: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    admitted: list[float] = field(default_factory=list[float])
    """When the quota let a request in."""
    over_quota: list[float] = field(default_factory=list[float])
    """When it refused one."""
    arrived: list[Bill] = field(default_factory=list[Bill])
    """Of answers that were sent to their last byte."""
    cut: list[Bill] = field(default_factory=list[Bill])
    """Of the others; the client may have got a part of them."""
    faults: dict[str, int] = field(default_factory=dict[str, int])
    statuses: dict[int, int] = field(default_factory=dict[int, int])
    long: int = 0
    """Answers that took longer than the proxy bears silence."""
    most_in_flight: int = 0


class _WatchedQuota(Quota):
    """A quota that notes in the books when it let a request in, and when not."""

    books: Books

    def admit(self) -> str | None:
        lacking = super().admit()
        (self.books.admitted if lacking is None else self.books.over_quota).append(time.time())
        return lacking


class _Endpoint:
    def __init__(self, timetable: Timetable) -> None:
        self.timetable, self.books = timetable, Books()
        self.quota = _WatchedQuota(window_s=timetable.window_s, headers="none", retry_after="none")
        self.quota.books = self.books
        self.faults, self.outage = RandomFaults(0.0, seed=1, failures=FAULTS), Outage()
        self.server = DoubleServer(
            DOUBLES["vllm"],
            quota=self.quota,
            faults=(self.outage, self.faults),
            latency_s=LATENCY_S,
            stream_s=self._stream_s,
        )
        self.proxy = IdleCutter(self.server, idle_s=SILENT_S)

    def _stream_s(self, number: int) -> float:
        if not self.books.begun or number % LONG_EVERY:
            return 0.0
        self.books.long += 1
        return LONG_S

    async def run(self, pipe: Any) -> None:
        await self.server.start()
        await self.proxy.start()
        pipe.send(self.proxy.url)
        await asyncio.to_thread(pipe.recv)
        following = asyncio.create_task(self._follow())
        await asyncio.to_thread(pipe.recv)
        following.cancel()
        await self.proxy.stop()
        await self.server.stop()
        books = self.books
        books.faults, books.statuses = dict(self.faults.made), dict(self.server.statuses)
        books.arrived = [done.bill for done in self.server.answered if done.delivered]
        books.cut = [done.bill for done in self.server.answered if not done.delivered]
        books.most_in_flight = self.server.most_in_flight
        pipe.send(books)

    async def _follow(self) -> None:
        timetable = self.timetable
        self.books.begun = time.time()
        self.quota.requests = timetable.requests_per_window
        self.faults.rate = timetable.fault_rate
        (away, back), (busy, idle) = timetable.outages
        await self._until(away)
        await self.proxy.stop()
        await self.server.stop()
        await self._until(back)
        await self.server.start()
        await self.proxy.start()
        self.books.outages.append((self.books.begun + away, time.time()))
        await self._until(timetable.headers_from_s)
        self.quota.headers, self.quota.retry_after = "openai", "seconds"
        await self._until(busy)
        self.outage.now = "503"
        await self._until(idle)
        self.outage.now = None
        self.books.outages.append((self.books.begun + busy, time.time()))

    async def _until(self, second: float) -> None:
        await asyncio.sleep(max(0.0, self.books.begun + second - time.time()))


def _serve(pipe: Any, timetable: Timetable) -> None:
    asyncio.run(_Endpoint(timetable).run(pipe))


class SoakServer:
    def __init__(self, pipe: Any) -> None:
        self._pipe = pipe
        self.url: str = pipe.recv()

    def begin(self) -> None:
        """The timetable, and with it the faults."""
        self._pipe.send("begin")

    def end(self) -> Books:
        """Stop, and hand over what was counted."""
        self._pipe.send("end")
        return self._pipe.recv()


@contextmanager
def soak_server(timetable: Timetable) -> Iterator[SoakServer]:
    mine, theirs = multiprocessing.Pipe()
    spawned = multiprocessing.get_context("spawn")
    process = spawned.Process(target=_serve, args=(theirs, timetable), daemon=True)
    process.start()
    try:
        yield SoakServer(mine)
    finally:
        process.terminate()
        process.join()
