"""When the next shard is opened: early enough that no slot waits for the stragglers of another.

A shard ends when its slowest item does. If the next were opened only then, slots would stand empty
at the end of every shard. So what counts is how many items of the open shards have yet to start.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Hashable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager

AHEAD = 0.25
"""Items that should be ready to start, as a share of the slots."""

MOST = 8
"""Open shards, as a multiple of those that fill the slots: what stragglers hold in memory."""


class ShardScheduler:
    """Over lanes, each with slots of its own: worker processes, or this one alone. One event loop;
    who waits first opens first."""

    def __init__(self, slots: Sequence[int], shard_size: int) -> None:
        """`slots`: of each lane, the items that it works on at once."""
        self._slots = list(slots)
        self._most = [MOST * -(-n // shard_size) for n in slots]
        self._unstarted: list[dict[Hashable, int]] = [{} for _ in slots]
        """By lane: open shard -> its items that have yet to start."""
        self._lane_of: dict[Hashable, int] = {}
        self._waiting: deque[tuple[Hashable, int, asyncio.Future[None]]] = deque()

    @asynccontextmanager
    async def turn(self, shard: Hashable, items: int) -> AsyncIterator[None]:
        """Wait until the shard should be opened; it is open until the block ends."""
        if self._waiting or not self._wanted():
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((shard, items, turn))
            try:
                await turn
            except asyncio.CancelledError:
                if not turn.cancelled():  # its turn had come, and nobody will use it
                    self._close(shard)
                raise
        else:
            self._open(shard, items)
        try:
            yield
        finally:
            self._close(shard)

    @contextmanager
    def held(self, shard: Hashable, items: int) -> Iterator[int]:
        """The shard is open, with none of its items started; gives its lane."""
        mine = shard not in self._lane_of
        self._open(shard, items)
        try:
            yield self._lane_of[shard]
        finally:
            if mine:
                self._close(shard)

    def _open(self, shard: Hashable, items: int) -> None:
        lane = self._lane_of.setdefault(shard, self._idlest())
        self._unstarted[lane][shard] = items

    def started(self, shard: Hashable) -> None:
        """One of the shard's items has got a slot; nothing if the shard was given up."""
        if shard in self._lane_of:
            lane = self._unstarted[self._lane_of[shard]]
            lane[shard] = max(0, lane[shard] - 1)
            self._next()

    def _close(self, shard: Hashable) -> None:
        self._unstarted[self._lane_of.pop(shard)].pop(shard)
        self._next()

    def _next(self) -> None:
        while self._waiting and self._wanted():
            shard, items, turn = self._waiting.popleft()
            if not turn.done():
                self._open(shard, items)
                turn.set_result(None)

    def _wanted(self) -> bool:
        """Whether the idlest lane has too little ahead, and room for another shard."""
        lane = self._idlest()
        ahead = sum(self._unstarted[lane].values())
        few = ahead < max(1.0, AHEAD * self._slots[lane])
        return few and len(self._unstarted[lane]) < self._most[lane]

    def _idlest(self) -> int:
        def load(lane: int) -> tuple[float, int]:
            shards = self._unstarted[lane]
            return sum(shards.values()) / self._slots[lane], len(shards)

        return min(range(len(self._slots)), key=load)
