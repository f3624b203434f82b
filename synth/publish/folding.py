"""Messages that come again, one after the other: shown once, with how often they come again."""

from collections.abc import Callable, Hashable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from synth.render.transcript import ShownTurn

LONGEST_BLOCK = 4
"""Messages that are looked at for coming again together."""


class TurnBlock(NamedTuple):
    first: int
    """Number of its first message on the page, from 1."""
    turns: tuple[ShownTurn, ...]
    again: tuple[ShownTurn, ...]
    """The messages after it that say and do the same, `times` as many; empty for most."""

    @property
    def times(self) -> int:
        return len(self.again) // len(self.turns)


def folded(turns: Sequence[ShownTurn], key: Callable[[ShownTurn], Hashable]) -> list[TurnBlock]:
    """The turns in blocks, in order. `key`: what makes two of them the same."""
    keys = [key(turn) for turn in turns]
    blocks: list[TurnBlock] = []
    place = 0
    while place < len(turns):
        length, times = _repeated(keys, place)
        middle, end = place + length, place + length * (times + 1)
        blocks.append(TurnBlock(place + 1, tuple(turns[place:middle]), tuple(turns[middle:end])))
        place = end
    return blocks


def _repeated(keys: Sequence[Hashable], start: int) -> tuple[int, int]:
    """How many turns from a place on come again together, and how often; (1, 0) where none do."""
    best = 1, 0
    for length in range(1, LONGEST_BLOCK + 1):
        block, times = keys[start : start + length], 0
        if any(a == b for a, b in pairwise(block)):
            continue  # what comes again inside it is folded by itself
        while keys[(at := start + (times + 1) * length) : at + length] == block:
            times += 1
        if times * length > best[0] * best[1]:
            best = length, times
    return best


def same(turn: ShownTurn) -> tuple[Any, ...]:
    """What a turn says and does, without where it stands."""
    calls = tuple(call._replace(call_index=None) for call in turn.calls)
    return turn._replace(calls=calls, place=None)
