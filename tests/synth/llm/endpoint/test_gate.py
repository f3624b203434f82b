"""The gate: order, slots under cancellation, minute limits, and waiting for an endpoint."""

import asyncio
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from records.errors import UnavailableError
from synth.llm.endpoint.gate import Gate, MinuteLimits, Outcome
from synth.llm.endpoint.limiter import Limiter
from synth.llm.endpoint.rates import Left, RateHint
from tests.synth.llm.endpoint.simulated import now, simulate

OK = Outcome("ok", answered=True)
GONE = Outcome("neutral", "unreachable", words="nobody listens")
FULL = Outcome("congested", "refused")


def test_gate_admits_no_more_than_the_limit_and_in_order() -> None:
    async def run() -> list[int]:
        gate, order, inside = Gate(Limiter(3)), [], 0

        async def work(number: int) -> None:
            nonlocal inside
            async with gate.slot():
                order.append(number)
                inside += 1
                assert inside <= 3
                await asyncio.sleep(0)
                inside -= 1

        await asyncio.gather(*(work(n) for n in range(50)))
        return order

    assert asyncio.run(run()) == list(range(50))


@pytest.mark.parametrize("moment", range(6))
def test_cancelled_waiters_take_no_slot_with_them(moment: int) -> None:
    async def run() -> None:
        gate = Gate(Limiter(2))

        async def work() -> None:
            async with gate.slot():
                await asyncio.sleep(0)

        tasks = [asyncio.create_task(work()) for _ in range(12)]
        for _ in range(moment):
            await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert gate.limiter.in_flight == 0
        await asyncio.wait_for(work(), 1)

    asyncio.run(run())


class Client(NamedTuple):
    """Comes after a while, asks until it is answered, and may be cancelled before."""

    comes_s: float
    takes_s: float
    cancelled_s: float | None
    model: str
    bad: tuple[str, ...]
    """What its first answers are, once the endpoint is there."""


BAD = {
    "refused": FULL,
    "asked to wait": FULL._replace(wait_s=30.0),
    "failed": Outcome("neutral", "failed", request="same"),
    "timeout": Outcome("congested", "failed", request="same"),
    "bad body": Outcome("neutral", answered=True),
    "empty": Outcome("ok", answered=True, hint=RateHint(requests=Left(10, 0, 20.0))),
}

CLIENTS = st.lists(
    st.builds(
        Client,
        st.floats(0.0, 100.0),
        st.floats(0.0, 20.0),
        st.none() | st.floats(0.0, 400.0),
        st.sampled_from(["a", "b"]),
        st.lists(st.sampled_from(sorted(BAD)), max_size=3).map(tuple),
    ),
    min_size=1,
    max_size=40,
)


@settings(deadline=None)  # a busy machine is no defect
@given(CLIENTS, st.integers(1, 12), st.floats(0.0, 100.0), st.floats(0.0, 300.0))
def test_nobody_is_lost_whatever_becomes_of_the_requests(
    clients: list[Client], ceiling: int, gone_at_s: float, gone_for_s: float
) -> None:
    """Once the endpoint answers, everybody who was not cancelled is served, and every slot is
    back."""

    async def run() -> None:
        limits = MinuteLimits(requests_per_minute=120)
        gate, began = Gate(Limiter(ceiling), limits=limits, clock=now), now()
        served: set[int] = set()

        async def work(number: int, client: Client) -> None:
            await asyncio.sleep(client.comes_s)
            bad = [BAD[name] for name in client.bad]
            while number not in served:
                async with gate.slot(client.model, 10) as slot:
                    await asyncio.sleep(client.takes_s)
                    if gone_at_s <= now() - began < gone_at_s + gone_for_s:
                        slot.outcome = GONE
                    elif bad:
                        slot.outcome = bad.pop()
                    else:
                        slot.outcome = OK
                        served.add(number)

        tasks = [asyncio.create_task(work(n, client)) for n, client in enumerate(clients)]
        for task, client in zip(tasks, clients, strict=True):
            if client.cancelled_s is not None:
                asyncio.get_running_loop().call_later(client.cancelled_s, task.cancel)
        done = await asyncio.gather(*tasks, return_exceptions=True)
        assert gate.limiter.in_flight == 0
        for number, (client, end) in enumerate(zip(clients, done, strict=True)):
            assert number in served or client.cancelled_s is not None
            assert end is None or isinstance(end, asyncio.CancelledError)
        async with asyncio.timeout(120.0), gate.slot("a") as slot:
            slot.outcome = OK

    simulate(run)


def test_one_request_tries_while_the_endpoint_is_gone() -> None:
    async def run() -> int:
        gate, began, tries, trying = Gate(Limiter(64), clock=now), now(), 0, 0

        async def work() -> None:
            nonlocal tries, trying
            while True:
                async with gate.slot() as slot:
                    if now() - began > 600.0:
                        slot.outcome = OK
                        return
                    if gate.breaker.state != "open":
                        tries, trying = tries + 1, trying + 1
                        assert trying == 1
                        await asyncio.sleep(0.5)
                        trying -= 1
                    slot.outcome = GONE

        await asyncio.gather(*(work() for _ in range(200)))
        return tries

    assert simulate(run) < 60


def test_a_lone_try_that_is_refused_does_not_lower_the_limit() -> None:
    async def run() -> list[int]:
        gate, began, limits = Gate(Limiter(32, start=32), clock=now), now(), list[int]()

        async def work() -> None:
            while True:
                async with gate.slot() as slot:
                    if gate.breaker.state == "trying":
                        limits.append(gate.limiter.limit)
                    await asyncio.sleep(0.02)
                    slot.outcome = FULL if now() - began < 60.0 else OK
                    if slot.outcome is OK:
                        return

        await asyncio.gather(*(work() for _ in range(64)))
        return limits

    limits = simulate(run)
    assert len(limits) > 5
    assert set(limits) == {16}


def test_everybody_who_waits_is_told_when_patience_is_over() -> None:
    async def run() -> None:
        gate, began = Gate(Limiter(4), name="the server", patience_s=90.0, clock=now), now()

        async def work() -> None:
            while True:
                async with gate.slot() as slot:
                    slot.outcome = GONE

        done = await asyncio.gather(*(work() for _ in range(20)), return_exceptions=True)
        assert 30.0 < now() - began <= 151.0
        assert all(isinstance(end, UnavailableError) for end in done)
        assert "the server has not answered for" in str(done[0])
        assert "nobody listens" in str(done[0])
        assert gate.limiter.in_flight == 0

    simulate(run)


def test_who_watches_hears_of_a_wait_and_of_its_end() -> None:
    async def run() -> list[str | None]:
        told: list[str | None] = []

        def hear(endpoint: str, words: str | None) -> None:
            assert endpoint == "the server"
            told.append(words)

        gate = Gate(Limiter(4), name="the server", on_waiting=hear, clock=now)
        began = now()

        async def work() -> None:
            while True:
                async with gate.slot() as slot:
                    slot.outcome = GONE if now() - began < 100.0 else OK
                    if slot.outcome is OK:
                        return

        await asyncio.gather(*(work() for _ in range(8)))
        return told

    told = simulate(run)
    assert told[-1] is None
    assert all("nobody listens" in words for words in told[:-1] if words)
    assert None not in told[:-1]
    assert len(told) > 10


def test_a_model_that_has_used_up_its_minute_does_not_hold_up_another() -> None:
    async def run() -> float:
        gate, began = Gate(Limiter(4), clock=now), now()
        async with gate.slot("a") as slot:
            slot.outcome = OK._replace(hint=RateHint(requests=Left(10, 0, 50.0)))

        async def work(model: str) -> float:
            async with gate.slot(model) as slot:
                slot.outcome = OK
            return now() - began

        times = await asyncio.gather(work("a"), work("b"), work("a"))
        assert times[1] == 0.0
        return min(times[0], times[2])

    assert simulate(run) == pytest.approx(50.0, abs=0.1)
