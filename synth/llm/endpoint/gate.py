"""The way to one endpoint: who waits, for a slot, for a minute's limit, or for the endpoint itself.

Requests go first come, first served, but that one of another model may pass one whose model has
used up its minute. All processes of a run share the gate of an endpoint, which is the run's.
"""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

from records.errors import UnavailableError
from synth.llm.endpoint.breaker import Breaker, Failure
from synth.llm.endpoint.limiter import Limiter, Signal
from synth.llm.endpoint.rates import Meter, RateHint

SHOWN_EVERY_S = 5.0
"""How often who watches is told that the run waits."""

WORTH_TELLING_S = 3.0
"""A wait as short as this is no news."""


class Ticket(NamedTuple):
    """A request on its way: what `leave` needs to know of its start."""

    round: int
    wait: int
    model: str
    tokens: int


class Outcome(NamedTuple):
    """What came of a request, as far as the endpoint is concerned."""

    signal: Signal = "neutral"
    failure: Failure | None = None
    answered: bool = False
    """The server said something that was no refusal for load: it is there."""
    tokens: int | None = None
    """That the request used; None: as many as it was let in for."""
    request: str = ""
    """Tells requests apart, whichever try it is."""
    wait_s: float | None = None
    hint: RateHint | None = None
    words: str = ""


NO_OUTCOME = Outcome()
"""Of a request that was cancelled."""


class MinuteLimits(NamedTuple):
    """Of one endpoint, by the minute; None: what its headers say."""

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None


class _Meters:
    """The minute's limits: those set for the endpoint, or those that headers tell of a model."""

    def __init__(self, limits: MinuteLimits = MinuteLimits()) -> None:
        self.requests = Meter(limits.requests_per_minute)
        self.tokens = Meter(limits.tokens_per_minute)

    def delay(self, now: float, tokens: int) -> float:
        return max(self.requests.delay(now, 1), self.tokens.delay(now, tokens))

    def take(self, now: float, tokens: int) -> None:
        self.requests.take(now, 1)
        self.tokens.take(now, tokens)


class _Waiting(NamedTuple):
    turn: "asyncio.Future[Ticket]"
    model: str
    tokens: int


class Gate:
    """One event loop. `enter` waits; each ticket it gives comes back by one `leave`."""

    def __init__(
        self,
        limiter: Limiter,
        *,
        name: str = "the endpoint",
        limits: MinuteLimits = MinuteLimits(),
        patience_s: float = math.inf,
        on_waiting: Callable[[str, str | None], None] = lambda endpoint, words: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`on_waiting` is told the name and, in words, that requests wait for the endpoint; None
        for the words when that is over. After `patience_s` of it they raise UnavailableError."""
        self.limiter = limiter
        self.breaker = Breaker()
        self._name, self._patience_s = name, patience_s
        self._set = _Meters(limits)
        self._on_waiting, self._clock = on_waiting, clock
        self._meters: dict[str, _Meters] = {}
        self._waiting: list[_Waiting] = []
        self._timer: asyncio.TimerHandle | None = None
        self._told_at: float | None = None

    @asynccontextmanager
    async def slot(self, model: str = "", tokens: int = 0) -> AsyncIterator["Slot"]:
        slot = Slot(await self.enter(model, tokens))
        try:
            yield slot
        finally:
            self.leave(slot.ticket, slot.outcome)

    async def enter(self, model: str = "", tokens: int = 0) -> Ticket:
        """Wait for a slot, for room in the minute, and for the endpoint. UnavailableError when its
        patience is over."""
        now = self._clock()
        if not self._waiting and self.limiter.free and self._delay(now, model, tokens) == 0.0:
            return self._start(now, model, tokens)
        turn: asyncio.Future[Ticket] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(turn, model, tokens))
        self._serve()
        try:
            return await turn
        except asyncio.CancelledError:
            if not turn.cancelled() and turn.exception() is None:
                self.leave(turn.result(), NO_OUTCOME)  # the slot came with the cancellation
            raise

    def leave(self, ticket: Ticket, outcome: Outcome) -> None:
        now = self._clock()
        alone = outcome.signal == "congested" and self.breaker.is_trying(ticket.wait)
        # how many are too many at once is nothing that one alone can tell
        self.limiter.finish(ticket.round, "neutral" if alone else outcome.signal)
        meters = self._meters_of(ticket.model)
        if outcome.tokens is not None:
            for used in (self._set, meters):
                used.tokens.take(now, outcome.tokens - ticket.tokens)
        if outcome.hint is not None:
            if outcome.hint.requests is not None:
                meters.requests.hear(now, outcome.hint.requests)
            if outcome.hint.tokens is not None:
                meters.tokens.hear(now, outcome.hint.tokens)
        if outcome.failure is not None:
            self.breaker.failed(
                ticket.wait,
                now,
                outcome.failure,
                request=outcome.request,
                wait_s=outcome.wait_s,
                words=outcome.words,
            )
        elif outcome.answered:
            self.breaker.answered(ticket.wait)
        else:
            self.breaker.given_up(ticket.wait)
        self._serve()

    def _serve(self) -> None:
        """Let go who may go, and look again when somebody else may."""
        now = self._clock()
        self._tell(now)
        if self._is_hopeless(now):
            self._refuse(now)
        blocked: dict[str, float] = {}
        left: list[_Waiting] = []
        for place, waiting in enumerate(self._waiting):
            if waiting.turn.done():
                continue
            if not self.limiter.free:
                left += [w for w in self._waiting[place:] if not w.turn.done()]
                break
            delay = blocked.get(waiting.model)
            if delay is None:
                delay = self._delay(now, waiting.model, waiting.tokens)
            if delay > 0.0:
                blocked[waiting.model] = delay
                left.append(waiting)
            else:
                waiting.turn.set_result(self._start(now, waiting.model, waiting.tokens))
        self._waiting = left
        delays = [delay for delay in blocked.values() if delay < math.inf]
        if self._told_at is not None or self.breaker.state == "resting":
            delays.append(SHOWN_EVERY_S)
        if delays and left:
            self._look_again(min(delays))

    def _look_again(self, delay_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(max(delay_s, 0.001), self._serve)

    def _delay(self, now: float, model: str, tokens: int) -> float:
        own = self.breaker.delay(now)
        if own is None:
            return math.inf  # until the request that tries is back
        return max(own, self._set.delay(now, tokens), self._meters_of(model).delay(now, tokens))

    def _start(self, now: float, model: str, tokens: int) -> Ticket:
        for meters in (self._set, self._meters_of(model)):
            meters.take(now, tokens)
        return Ticket(self.limiter.start(), self.breaker.start(now), model, tokens)

    def _meters_of(self, model: str) -> _Meters:
        if model not in self._meters:
            self._meters[model] = _Meters()
        return self._meters[model]

    def _is_hopeless(self, now: float) -> bool:
        breaker = self.breaker
        if breaker.state != "resting" or breaker.since is None:
            return False
        return max(now, breaker.until) - breaker.since > self._patience_s

    def _refuse(self, now: float) -> None:
        breaker = self.breaker
        gone = f"has not answered for {_duration(now - (breaker.since or now))}"
        if breaker.until - now > self._patience_s:
            gone = f"asks to wait {_duration(breaker.until - now)}"
        error = (
            f"{self._name} {gone}, and the run waits no longer (outage_s); the last failure: "
            f"{breaker.words}"
        )
        for waiting in self._waiting:
            if not waiting.turn.done():
                waiting.turn.set_exception(UnavailableError(error))

    def _tell(self, now: float) -> None:
        breaker = self.breaker
        if breaker.since is None:
            if self._told_at is not None:
                self._told_at = None
                self._on_waiting(self._name, None)
            return
        long_enough = breaker.is_gone or max(now, breaker.until) - breaker.since > WORTH_TELLING_S
        due = self._told_at is None or now - self._told_at >= SHOWN_EVERY_S
        if breaker.state == "resting" and long_enough and due:
            self._told_at = now
            began = time.strftime("%H:%M:%S", time.localtime(time.time() - (now - breaker.since)))
            wait_s = max(0.0, breaker.until - now)
            self._on_waiting(
                self._name,
                f"waiting for {self._name} since {began}, next try in {wait_s:.0f} s: "
                f"{breaker.words}",
            )


class Slot:
    """Handed out by `Gate.slot`; its outcome is read when the request is over."""

    __slots__ = ("outcome", "ticket")

    def __init__(self, ticket: Ticket) -> None:
        self.ticket = ticket
        self.outcome = NO_OUTCOME


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
