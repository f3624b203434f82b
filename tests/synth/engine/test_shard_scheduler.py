"""The next shard opens before the last one ends: no slot is idle while there is work."""

import asyncio
import heapq
from collections.abc import Callable, Coroutine
from itertools import count
from random import Random
from typing import Any

import pytest

from synth.engine.shard_scheduler import MOST, ShardScheduler


class Clock:
    """Time that passes only while everybody waits."""

    def __init__(self) -> None:
        self.now = 0.0
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []
        self._numbers = count()

    async def sleep(self, seconds: float) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (self.now + seconds, next(self._numbers), woken))
        await woken

    async def settled(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)

    def advance(self) -> bool:
        if not self._waiting:
            return False
        self.now, _, woken = heapq.heappop(self._waiting)
        woken.set_result(None)
        return True


async def busy(slots: int, shard_size: int, shards: int) -> tuple[list[int], int]:
    """Running items at each moment at which some had yet to start, and the most open shards."""
    rng, clock = Random(3), Clock()
    scheduler = ShardScheduler([slots], shard_size)
    places = asyncio.Semaphore(slots)
    running, left, open_, most_open = 0, shards * shard_size, 0, 0
    seen: list[int] = []

    async def item(shard: int) -> None:
        nonlocal running, left
        async with places:
            scheduler.started(shard)
            running, left = running + 1, left - 1
            await clock.sleep(rng.lognormvariate(0.0, 1.0))  # stragglers of ten times the median
            running -= 1

    async def one(shard: int) -> None:
        nonlocal open_, most_open
        async with scheduler.turn(shard, shard_size):
            open_, most_open = open_ + 1, max(most_open, open_ + 1)
            with scheduler.held(shard, shard_size):
                await asyncio.gather(*(item(shard) for _ in range(shard_size)))
            open_ -= 1

    work = asyncio.gather(*map(one, range(shards)))
    while True:
        await clock.settled()
        if left:
            seen.append(running)
        if not clock.advance():
            break
    await work
    return seen, most_open


@pytest.mark.parametrize(("slots", "shard_size"), [(16, 5), (16, 40), (4, 7), (64, 30)])
def test_no_slot_is_idle_while_items_wait(slots: int, shard_size: int) -> None:
    seen, most_open = asyncio.run(busy(slots, shard_size, shards=1 + 600 // shard_size))
    full = sum(running == slots for running in seen) / len(seen)
    assert full > 0.98
    assert most_open <= MOST * -(-slots // shard_size)


def test_a_shard_goes_to_the_lane_with_the_least_to_do() -> None:
    scheduler = ShardScheduler([2, 2], shard_size=2)
    with scheduler.held("a", 2) as first, scheduler.held("b", 2) as second:
        assert {first, second} == {0, 1}
        scheduler.started("a")
        scheduler.started("a")
        with scheduler.held("c", 2) as third:
            assert third == first
    scheduler.started("a")  # a message that comes late is about nothing


def opener(
    scheduler: ShardScheduler, opened: list[str]
) -> Callable[[str], Coroutine[Any, Any, None]]:
    """Opens a shard in its turn, and notes it."""

    async def one(shard: str) -> None:
        async with scheduler.turn(shard, 1):
            opened.append(shard)
            await asyncio.sleep(0)

    return one


def test_who_is_cancelled_just_when_its_turn_comes_gives_it_back() -> None:
    async def run() -> None:
        scheduler = ShardScheduler([1], shard_size=1)
        opened: list[str] = []
        one = opener(scheduler, opened)
        with scheduler.held("first", 1):
            waiting = [asyncio.create_task(one(shard)) for shard in ("given up", "next")]
            await asyncio.sleep(0)
        waiting[0].cancel()  # after its turn was given, before it could run
        with pytest.raises(asyncio.CancelledError):
            await waiting[0]
        await asyncio.wait_for(waiting[1], 5)
        assert opened == ["next"]
        async with asyncio.timeout(5), scheduler.turn("last", 1):
            pass

    asyncio.run(run())


def test_who_is_cancelled_while_waiting_opens_nothing() -> None:
    async def run() -> None:
        scheduler = ShardScheduler([1], shard_size=1)
        opened: list[str] = []
        one = opener(scheduler, opened)
        with scheduler.held("first", 1):
            waiting = [asyncio.create_task(one(shard)) for shard in ("given up", "next")]
            await asyncio.sleep(0)
            assert not opened
            waiting[0].cancel()
            await asyncio.sleep(0)
        await asyncio.wait_for(waiting[1], 5)
        assert opened == ["next"]

    asyncio.run(run())
