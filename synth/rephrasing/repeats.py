"""How often each of many texts has come, in a few bytes a text."""

from array import array

FEWEST_SLOTS = 1 << 10

MOST_FULL = 0.6
"""Share of slots in use from which on a table is made twice as large."""

_MOST = 255


class TextCounts:
    """Counts digests of 64 bits: 9 bytes a slot, 15 to 30 for each different text. A dict would
    take ten times as many."""

    def __init__(self) -> None:
        self._digests = array("Q", bytes(8 * FEWEST_SLOTS))
        self._counts = bytearray(FEWEST_SLOTS)
        """0 for an empty slot."""
        self._more: dict[int, int] = {}
        """Digest -> times over `_MOST`."""
        self._used = 0

    def add(self, digest: int) -> int:
        """Count it; how often it was counted before."""
        slot = self._slot_of(digest)
        before = self._counts[slot]
        if before == _MOST:
            self._more[digest] = more = self._more.get(digest, 0) + 1
            return _MOST + more - 1
        self._counts[slot] += 1
        if before == 0:
            self._digests[slot] = digest
            self._used += 1
            if self._used > MOST_FULL * len(self._counts):
                self._grow()
        return before

    def _slot_of(self, digest: int) -> int:
        digests, counts, mask = self._digests, self._counts, len(self._counts) - 1
        slot = digest & mask
        while counts[slot] and digests[slot] != digest:
            slot = (slot + 1) & mask
        return slot

    def _grow(self) -> None:
        digests, counts = self._digests, self._counts
        self._digests = array("Q", bytes(16 * len(counts)))
        self._counts = bytearray(2 * len(counts))
        for digest, count in zip(digests, counts, strict=True):
            if count:
                slot = self._slot_of(digest)
                self._digests[slot], self._counts[slot] = digest, count
