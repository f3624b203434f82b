"""How many requests an endpoint gets at once: slow start, then additive growth, halving.

TCP's rules: the limit doubles with each round of answers until the first sign of congestion (429,
503, 529 or time-out); each sign halves it, at most once per round; then it grows by one a round.
Other failures say nothing about load and move nothing.
"""

from typing import Literal

START = 8
"""First limit: enough to learn from, few enough not to upset a small server."""

CUT = 0.5
"""Factor on the limit at a sign of congestion."""

Signal = Literal["ok", "congested", "neutral"]


class Limiter:
    """A pure state machine: it owns no clock, tasks or clients.

    `limit` is in [1, ceiling]. A request takes the current round with it as its ticket, so that
    the many refusals of one overload count once.
    """

    def __init__(self, ceiling: int, *, start: int = START) -> None:
        if ceiling < 1:
            raise ValueError(f"ceiling must be >= 1, got {ceiling}")
        self.ceiling = ceiling
        self.limit = min(start, ceiling)
        self.in_flight = 0
        self.slow_start = True
        self._round = 0
        self._answers = 0

    @property
    def free(self) -> bool:
        return self.in_flight < self.limit

    def start(self) -> int:
        """Count a request as started; returns its ticket for `finish`."""
        self.in_flight += 1
        return self._round

    def finish(self, ticket: int, signal: Signal) -> None:
        used = 2 * self.in_flight >= self.limit  # an idle limit has proved nothing
        self.in_flight -= 1
        if signal == "congested" and ticket == self._round:
            self._round += 1
            self._answers = 0
            self.slow_start = False
            self.limit = max(1, int(self.limit * CUT))
        elif signal == "ok" and ticket == self._round and used:
            self._grow()

    def _grow(self) -> None:
        self._answers += 1
        if self.slow_start or self._answers >= self.limit:
            self._answers = 0
            self.limit = min(self.limit + 1, self.ceiling)
