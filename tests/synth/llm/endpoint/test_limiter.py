"""Adaptive concurrency: TCP's properties on a simulated clock."""

import heapq
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from synth.llm.endpoint.limiter import START, Limiter, Signal

SIGNALS = st.sampled_from(["ok", "congested", "neutral"])


def run_rounds(limiter: Limiter, rounds: int, signal: Signal = "ok") -> list[int]:
    """The limit after each round of as many requests as it allowed."""
    limits = []
    for _ in range(rounds):
        tickets = [limiter.start() for _ in range(limiter.limit)]
        for ticket in tickets:
            limiter.finish(ticket, signal)
            limiter.in_flight += 1  # another one always waits, so the limit stays in use
        limiter.in_flight -= len(tickets)
        limits.append(limiter.limit)
    return limits


def test_limit_doubles_until_the_first_congestion_then_grows_by_one() -> None:
    limiter = Limiter(1000, start=4)
    assert run_rounds(limiter, 4) == [8, 16, 32, 64]
    limiter.finish(limiter.start(), "congested")
    assert limiter.limit == 32
    assert run_rounds(limiter, 3) == [33, 34, 35]


def test_one_overload_cuts_once() -> None:
    limiter = Limiter(1000, start=64)
    assert run_rounds(limiter, 1, "congested") == [32]


def test_idle_limit_does_not_grow() -> None:
    limiter = Limiter(1000, start=16)
    for _ in range(100):
        limiter.finish(limiter.start(), "ok")
    assert limiter.limit == 16


@given(st.integers(1, 300), st.lists(st.tuples(SIGNALS, st.booleans()), max_size=200))
def test_limit_stays_between_one_and_the_ceiling(
    ceiling: int, events: list[tuple[Signal, bool]]
) -> None:
    limiter, tickets = Limiter(ceiling), []
    for signal, starts in events:
        if starts and limiter.free:
            tickets.append(limiter.start())
        elif tickets:
            before = limiter.limit
            limiter.finish(tickets.pop(0), signal)
            assert (limiter.limit <= before) if signal != "ok" else (limiter.limit >= before)
        assert 1 <= limiter.limit <= ceiling
        assert limiter.in_flight == len(tickets)


def simulate(
    capacity: Callable[[float], int], ceiling: int, until_s: float
) -> list[tuple[float, int]]:
    """(time, limit) of a server that answers in 50 ms and refuses what is above its capacity."""
    limiter, now, seen = Limiter(ceiling), 0.0, []
    flying: list[tuple[float, int, int, Signal]] = []
    while now < until_s:
        while limiter.free:
            over = limiter.in_flight >= capacity(now)
            ticket = limiter.start()
            event = (
                now + (0.001 if over else 0.05),
                len(seen),
                ticket,
                "congested" if over else "ok",
            )
            heapq.heappush(flying, event)  # type: ignore[misc]
            seen.append((now, limiter.limit))
        now, _, ticket, signal = heapq.heappop(flying)
        limiter.finish(ticket, signal)
    return seen


def test_limit_finds_the_servers_capacity_and_follows_it() -> None:
    seen = simulate(lambda now: 40 if now < 20 else 10, ceiling=512, until_s=40)
    early = [limit for now, limit in seen if 5 < now < 20]
    late = [limit for now, limit in seen if now > 25]
    assert min(early) >= 18
    assert max(early) <= 42
    assert min(late) >= 4
    assert max(late) <= 12


def test_unlimited_server_is_used_up_to_the_ceiling_within_five_rounds() -> None:
    seen = simulate(lambda now: 10**9, ceiling=128, until_s=1.0)
    assert seen[0][1] == START
    assert next(now for now, limit in seen if limit == 128) <= 0.3
