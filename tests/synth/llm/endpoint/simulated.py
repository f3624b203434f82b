"""An event loop whose clock is simulated, and clients and servers on it: hours within a second."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar

from synth.llm.endpoint.failures import MEANINGS
from synth.llm.endpoint.gate import Gate, MinuteLimits, Outcome
from synth.llm.endpoint.limiter import Limiter
from synth.llm.endpoint.rates import rate_hint, retry_after
from tests.doubles.quotas import Quota, duration

T = TypeVar("T")


class _Selector(selectors.SelectSelector):
    """It waits for nothing: the time passes at once."""

    passed_s = 1_000.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "everybody waits for somebody else"
        self.passed_s += max(timeout, 0.0)
        return []


class SimulatedLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._simulated = _Selector()
        super().__init__(self._simulated)

    def time(self) -> float:
        return self._simulated.passed_s


def simulate(what: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run it to its end on a simulated clock, which `now` reads."""
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        return runner.run(what())


def now() -> float:
    return asyncio.get_running_loop().time()


class Limit(Protocol):
    """A server's limit: lets a request in or says what it lacks, and tells headers."""

    admitted: int
    refused: int

    def admit(self) -> str | None: ...

    def told(self, *, refused: bool) -> dict[str, str]: ...


@dataclass(kw_only=True)
class Bucket:
    """A token bucket of `size` requests that is full again after `window_s`."""

    requests: int
    window_s: float = 60.0
    headers: bool = True
    admitted: int = 0
    refused: int = 0
    _level: float = -1.0
    _at: float = 0.0

    def admit(self) -> str | None:
        self._fill()
        if self._level < 1.0:
            self.refused += 1
            return "requests"
        self._level -= 1.0
        self.admitted += 1
        return None

    def told(self, *, refused: bool) -> dict[str, str]:
        if not self.headers:
            return {}
        self._fill()
        return {
            "x-ratelimit-limit-requests": str(self.requests),
            "x-ratelimit-remaining-requests": str(int(self._level)),
            "x-ratelimit-reset-requests": duration(
                (self.requests - self._level) * self.window_s / self.requests
            ),
        }

    def _fill(self) -> None:
        at = now()
        gained = (at - self._at) * self.requests / self.window_s
        self._level = self.requests if self._level < 0 else min(self.requests, self._level + gained)
        self._at = at


class Asked(NamedTuple):
    admitted_per_minute: float
    refused_per_answer: float


@dataclass
class Crowd:
    """So many clients that ask one server through one gate, again and again."""

    limit: Limit | Quota
    latency_s: float = 1.0
    in_flight: int = 64
    limits: MinuteLimits = field(default_factory=MinuteLimits)

    async def ask_for(self, minutes: float, *, settle: float = 2.0) -> Asked:
        """For so many minutes after the first few."""
        gate = Gate(Limiter(self.in_flight), limits=self.limits, clock=now)
        clients = [asyncio.create_task(self._client(gate, n)) for n in range(self.in_flight)]
        await asyncio.sleep(60.0 * settle)
        before = self.limit.admitted, self.limit.refused
        await asyncio.sleep(60.0 * minutes)
        answers, refusals = self.limit.admitted - before[0], self.limit.refused - before[1]
        for client in clients:
            client.cancel()
        await asyncio.gather(*clients, return_exceptions=True)
        assert gate.limiter.in_flight == 0
        return Asked(answers / minutes, refusals / max(answers, 1))

    async def _client(self, gate: Gate, number: int) -> None:
        while True:
            async with gate.slot() as slot:
                await asyncio.sleep(0.02)
                refused = self.limit.admit() is not None
                headers = self.limit.told(refused=refused)
                slot.outcome = _outcome(headers, refused=refused)
                await asyncio.sleep(0.0 if refused else self.latency_s)
            if refused:  # as a request's own wait before its next try
                await asyncio.sleep(0.25 + 0.25 * (number % 7) / 7)


def _outcome(headers: Mapping[str, str], *, refused: bool) -> Outcome:
    if not refused:
        return Outcome("ok", answered=True, hint=rate_hint(headers))
    meaning = MEANINGS["rate_limited"]
    wait_s = retry_after(headers)
    return Outcome(meaning.signal, meaning.failure, wait_s=wait_s, hint=rate_hint(headers))
