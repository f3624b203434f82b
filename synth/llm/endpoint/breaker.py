"""When an endpoint is given rest: a circuit breaker, as a pure state machine.

A refusal for load (429, 503, 529) holds every request back as long as the server asks. Where it
asks for nothing, one alone says little; several in a row, with no answer between them, hold every
request back for a quarter of a second, doubled up to five. An endpoint that cannot be reached, or
fails several requests in a row, is held back longer, up to fifteen seconds. After each wait one
request tries alone; its answer opens the way for all, and after refusals for load it is enough that
none comes soon. Refusals of requests that were sent before the wait began say nothing new.
"""

from typing import Literal

FIRST_REST_S = 0.25
LONGEST_REST_S = 5.0
"""After refusals for load, where the server names no time: of a quota by the minute it wastes
little, and a single request in five seconds is no load."""

LET_IN_S = 2.0
"""A request that is refused for load is told so sooner; its answer may take minutes."""

FIRST_OUTAGE_S = 1.0
LONGEST_OUTAGE_S = 15.0
"""While the endpoint is gone."""

REFUSALS_IN_A_ROW = 3
"""Without an answer to a request that was sent after the first of them, that are a limit of the
server's and no chance."""

REQUESTS_THAT_FAIL = 3
"""Different requests in a row, without any answer between them, that make an outage of failures
which may be a request's own fault: a server error, a time-out."""

Failure = Literal["refused", "unreachable", "failed"]
"""For load; nobody listens; by what may be the request's fault."""

BreakerState = Literal["open", "resting", "trying"]


class Breaker:
    """It owns no clock: every call is given the time in seconds."""

    def __init__(self) -> None:
        self.state: BreakerState = "open"
        self.since: float | None = None
        """When the endpoint last stopped answering; None while it answers."""
        self.until = 0.0
        """When the next try is due."""
        self.words = ""
        """What the last failure was."""
        self.is_gone = False
        """Whether it is an outage rather than a refusal for load."""
        self._rests = 0
        self._sent = 0
        """Requests so far; each takes its number along."""
        self._sent_before = 0
        """The last of them when the last wait began."""
        self._try = 0
        self._tried_at = 0.0
        self._refused = 0
        self._refused_after = 0
        """The last request when the first of the refusals came."""
        self._unreachable = 0
        self._failed: set[str] = set()

    def delay(self, now: float) -> float | None:
        """Seconds until a request may go; 0: now; None: when the one that tries is back."""
        if self.state == "open":
            return 0.0
        if self.state == "trying":
            return None if self.is_gone else max(0.0, self._tried_at + LET_IN_S - now)
        return max(0.0, self.until - now)

    def start(self, now: float) -> int:
        """A request goes, as `delay` allowed; the number is for what comes of it."""
        self._sent += 1
        if self.state == "resting":
            self.state, self._try, self._tried_at = "trying", self._sent, now
        elif self.state == "trying":  # who tries is out for so long that it has been let in
            self.state = "open"
        return self._sent

    def is_trying(self, number: int) -> bool:
        """Whether the request with this number is the one that tries alone."""
        return self.state == "trying" and number == self._try

    def answered(self, number: int) -> None:
        """With any answer: the endpoint is there."""
        if number > self._refused_after:
            self._refused = 0
        self._unreachable = 0
        self._failed.clear()
        if number > self._sent_before:
            self.state, self.since, self._rests, self.is_gone = "open", None, 0, False

    def given_up(self, number: int) -> None:
        """The request was cancelled and says nothing; if it was the one that tried, another may."""
        if self.is_trying(number):
            self.state = "resting"

    def failed(
        self,
        number: int,
        now: float,
        failure: Failure,
        *,
        request: str = "",
        wait_s: float | None = None,
        words: str = "",
    ) -> None:
        """`request` tells requests apart; `wait_s` is what the server asked for."""
        was_trying = self.is_trying(number)
        if number <= self._sent_before:
            return
        self.words = words or self.words
        match failure:
            case "refused":
                if not self._refused:
                    self._refused_after = self._sent
                self._refused += 1
                if was_trying or wait_s is not None or self._refused >= REFUSALS_IN_A_ROW:
                    self._rest(now, wait_s, FIRST_REST_S, LONGEST_REST_S, gone=False)
            case "unreachable":
                self._unreachable += 1
                if was_trying or self._unreachable >= REQUESTS_THAT_FAIL:
                    self._rest(now, wait_s, FIRST_OUTAGE_S, LONGEST_OUTAGE_S, gone=True)
            case "failed":
                self._failed.add(request)
                if was_trying or len(self._failed) >= REQUESTS_THAT_FAIL:
                    self._rest(now, wait_s, FIRST_OUTAGE_S, LONGEST_OUTAGE_S, gone=True)

    def _rest(
        self, now: float, wait_s: float | None, first_s: float, longest_s: float, *, gone: bool
    ) -> None:
        if gone != self.is_gone:  # what was learned of one says nothing of the other
            self._rests = 0
        own_s = min(first_s * 2**self._rests, longest_s)
        self._rests = min(self._rests + 1, 16)
        self.state = "resting"
        self.is_gone = gone
        self._sent_before = self._sent
        self.until = now + max(own_s, wait_s or 0.0)
        self.since = now if self.since is None else self.since
