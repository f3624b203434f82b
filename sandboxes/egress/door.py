"""Who is let in at the egress proxy before anybody knows who it is.

All sandboxes of a cluster share one proxy, and what is in them may want to keep the others from it:
by thousands of connections, by saying nothing on them, or by a first line without an end. So each
peer, which is the address of a Pod, has so many connections at once and no more, all of them
together have so many, and each has so long, and so many bytes, to show its pass. What is refused is
counted by its reason, and logged with the count at most once in a while: a log is a place that can
be filled, too.
"""

import logging
import time
from collections import Counter

from sandboxes.egress import passes

MOST, MOST_OF_PEER = 1024, 128
"""Connections open at once, of all peers and of one: the buffers of each may take half a megabyte.
One server has 64 tunnels at once (`proxy.AT_ONCE`), and as many again may wait for theirs."""

SHOW_S = 10.0
"""For a connection to show its pass, which a forwarder sends at once."""

LONGEST_LINE = passes.LONGEST + 100
"""Bytes of the line in which a pass is shown."""

LOG_EVERY_S = 10.0

LET_IN = "let_in"
"""Counted: connections that have shown a pass."""

TOO_MANY, TOO_MANY_OF_PEER = "too_many", "too_many_of_peer"
LATE, LONG, NO_PASS, GONE = "no_pass_in_time", "line_too_long", "no_pass", "gone_before_its_pass"
"""Counted: why others were not let in. The last is what a probe does, and is not logged."""

log = logging.getLogger(__name__)


class EgressDoor:
    """The door of one proxy."""

    def __init__(
        self, *, most: int = MOST, most_of_peer: int = MOST_OF_PEER, show_s: float = SHOW_S
    ) -> None:
        """ValueError for limits that let nobody in."""
        if not 0 < most_of_peer <= most:
            raise ValueError(
                "the egress proxy takes at least one connection of a peer, and of all peers no "
                f"fewer than of one; got {most_of_peer} of a peer and {most} of all"
            )
        self._most, self._most_of_peer, self.show_s = most, most_of_peer, show_s
        self._inside: Counter[str] = Counter()
        """Peer -> its open connections."""
        self._open = 0
        self._logged: dict[str, float] = {}
        """Reason -> when it was logged last."""
        self.counts: Counter[str] = Counter()

    def enter(self, peer: str) -> str | None:
        """None where a connection of this peer is let in, which then has to `leave`; else what to
        tell it."""
        inside = self._inside.get(peer, 0)
        if inside >= self._most_of_peer:
            why = f"one address may have {self._most_of_peer} connections at once"
            self.refused(TOO_MANY_OF_PEER, peer, why)
            return why
        if self._open >= self._most:
            why = f"the egress proxy has {self._most} connections, which is all that it takes"
            self.refused(TOO_MANY, peer, why)
            return why
        self._inside[peer] = inside + 1
        self._open += 1
        return None

    def leave(self, peer: str) -> None:
        self._inside[peer] -= 1
        self._open -= 1
        if not self._inside[peer]:  # addresses are many
            del self._inside[peer]

    def refused(self, reason: str, peer: str, why: str) -> None:
        """Count it, and say so unless the same was said just now."""
        self.counts[reason] += 1
        now = time.monotonic()
        last = self._logged.get(reason)
        if reason != GONE and (last is None or now - last >= LOG_EVERY_S):
            self._logged[reason] = now
            log.warning("refused, %s, %d so far: %s: %s", reason, self.counts[reason], peer, why)
