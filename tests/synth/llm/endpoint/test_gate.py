"""The gate: order, slots under cancellation, minute limits, and waiting for an endpoint."""

import asyncio

import pytest

from synth.llm.endpoint.gate import Gate
from synth.llm.endpoint.limiter import Limiter


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
