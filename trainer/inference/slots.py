"""What each slot of a cache holds, which one a prompt takes, and what it is spared to read.

Shape suffixes in this file: B = slots, S = tokens that a slot can hold, L = layers with experts,
K = experts of a token.
"""

from bisect import bisect_left
from collections.abc import Sequence

from torch import Tensor

from trainer.model.cache import LatentCache

COPIED_TOKENS = 16
"""So many tokens more in another slot are worth a copy, and another pass for what is behind."""


class HeldTokens:
    """The tokens that the slots hold, and the slots that are free."""

    def __init__(self, cache: LatentCache, routes_BSLK: Tensor | None) -> None:
        """`routes_BSLK`: experts of the tokens, which go with them; None where nobody asks."""
        self._cache, self._routes_BSLK = cache, routes_BSLK
        slots = len(cache.lengths_B)
        self._held: list[list[int]] = [[] for _ in range(slots)]
        self._free = list(range(slots))
        """The one freed longest ago first."""

    @property
    def has_room(self) -> bool:
        """Whether a slot is free."""
        return bool(self._free)

    def count(self, slot: int) -> int:
        """Tokens that it holds."""
        return len(self._held[slot])

    def add(self, slot: int, tokens: Sequence[int]) -> None:
        """These were put behind what the cache holds."""
        self._held[slot].extend(tokens)

    def leave(self, slot: int) -> None:
        """It is free, and holds what it holds until it is taken."""
        self._free.append(slot)

    def forget(self) -> None:
        """Drop what all slots hold."""
        self._held = [[] for _ in self._held]
        self._cache.lengths_B.zero_()

    def take(self, read: Sequence[int]) -> tuple[int, int]:
        """A free slot for what begins with `read`, and how many tokens of it the slot holds then;
        the last one is read in any case, as what follows it is to be drawn.

        It is the slot whose content `read` goes on from, else the one freed longest ago: another's
        would be lost, and can be copied.
        """
        known = list(read[:-1])
        for slot in self._free:
            if self._held[slot] == known:  # an answer that paused
                self._free.remove(slot)
                return slot, len(known)
        shared = [shared_tokens(held, known) for held in self._held]
        going_on = [slot for slot in self._free if shared[slot] == len(self._held[slot])]
        slot = max(going_on, key=shared.__getitem__) if going_on else self._free[0]
        self._free.remove(slot)
        self._held[slot] = known[: shared[slot]]
        self._cache.lengths_B[slot] = shared[slot]
        source = max(range(len(shared)), key=shared.__getitem__)
        if shared[source] - shared[slot] >= COPIED_TOKENS:
            self.copy(source, slot, shared[source])
        return slot, len(self._held[slot])

    def copy(self, source: int, target: int, end: int) -> None:
        """Put the first `end` tokens of a slot into another, which holds the first of them."""
        begin = len(self._held[target])
        self._cache.copy(source, target, begin, end)
        if self._routes_BSLK is not None:
            self._routes_BSLK[target, begin:end] = self._routes_BSLK[source, begin:end]
        self._held[target] = self._held[source][:end]


def shared_tokens(held: Sequence[int], read: Sequence[int]) -> int:
    """How many both begin with."""
    most = min(len(held), len(read))
    return bisect_left(range(1, most + 1), True, key=lambda n: held[:n] != read[:n])
