"""The budget is hard: by the server's own count, under concurrency, and over a resume."""

import asyncio
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from records.errors import BudgetError
from synth.llm.budget import Amount, Budget
from synth.llm.ledger import spent_in
from synth.llm.settings.config import BudgetConfig, LimitConfig
from tests.synth.llm.server import Body, Fault, answer, serve
from tests.synth.llm.test_client import HELLO, llm_of, role


def amount(tokens: int) -> Amount:
    return Amount(tokens / 1000, tokens)


@given(
    st.integers(0, 300),
    st.integers(0, 200),
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 60), st.floats(0, 1)), max_size=40),
)
def test_nothing_ever_exceeds_a_limit(
    run_limit: int, stage_limit: int, requests: list[tuple[str, int, float]]
) -> None:
    async def run() -> None:
        config = BudgetConfig(tokens=run_limit, stages={"a": LimitConfig(tokens=stage_limit)})
        budget = Budget(config)
        spent = {"a": 0, "b": 0}

        async def request(stage: str, worst: int, share: float) -> None:
            try:
                await budget.reserve(stage, amount(worst))
            except BudgetError:
                return
            await asyncio.sleep(0)
            used = int(worst * share)
            spent[stage] += used
            budget.settle(stage, amount(worst), amount(used))

        await asyncio.wait_for(asyncio.gather(*(request(*r) for r in requests)), 5)
        assert spent["a"] <= stage_limit
        assert sum(spent.values()) == budget.run.spent.tokens <= run_limit
        assert budget.run.reserved.tokens == 0

    asyncio.run(run())


def test_request_waits_for_one_in_flight_that_may_leave_room() -> None:
    async def run() -> None:
        budget = Budget(BudgetConfig(tokens=100))
        await budget.reserve("s", amount(80))
        second = asyncio.create_task(budget.reserve("s", amount(80)))
        await asyncio.sleep(0)
        assert not second.done()
        budget.settle("s", amount(80), amount(10))
        await asyncio.wait_for(second, 1)
        third = asyncio.create_task(budget.reserve("s", amount(20)))
        await asyncio.sleep(0)
        budget.settle("s", amount(80), amount(80))
        with pytest.raises(BudgetError, match=r"the run: tokens 90 spent of 100.*may need 20"):
            await asyncio.wait_for(third, 1)

    asyncio.run(run())


def test_request_that_can_never_fit_does_not_wait() -> None:
    async def run() -> None:
        budget = Budget(BudgetConfig(usd=0.05, stages={"s": LimitConfig(usd=0.01)}))
        await budget.reserve("s", amount(5))
        with pytest.raises(BudgetError, match=r"stage s: USD 0\.000000 spent of 0\.010000"):
            await budget.reserve("s", amount(11))

    asyncio.run(run())


def test_cancelled_waiter_leaves_nothing_behind() -> None:
    async def run() -> None:
        budget = Budget(BudgetConfig(tokens=100))
        await budget.reserve("s", amount(80))
        waiter = asyncio.create_task(budget.reserve("s", amount(80)))
        await asyncio.sleep(0)
        waiter.cancel()
        await asyncio.gather(waiter, return_exceptions=True)
        budget.settle("s", amount(80), amount(0))
        everything = budget.reserve("s", amount(100))
        await asyncio.wait_for(everything, 1)  # TimeoutError were a part still taken

    asyncio.run(run())


@pytest.mark.parametrize("faults", [0.0, 0.3])
@pytest.mark.parametrize("in_flight", [1, 64])
def test_server_never_bills_more_than_the_budget(
    in_flight: int, faults: float, tmp_path: Path
) -> None:
    """Three invocations share one budget; each restores what the earlier ones spent."""
    limit = 6_000
    dice = random.Random(1)

    def script(number: int, body: Body) -> Body | Fault:
        if dice.random() < faults:
            return dice.choice([Fault(429), Fault(500), Fault(reset=True)])
        prompt = sum(len(message["content"]) for message in body["messages"])
        return answer(usage=(prompt + 20, dice.randrange(body["max_tokens"] + 1)))

    async def run() -> None:
        refused = 0
        async with serve(script, lambda body: dice.random() / 200) as server:
            rows = []
            for invocation in range(3):
                budget = Budget(BudgetConfig(tokens=limit), spent_in(rows))
                config = role(server.url, max_in_flight=in_flight, retries=20)
                async with llm_of(config, tmp_path, budget=budget) as llm:
                    done = await asyncio.gather(
                        *(
                            llm.chat("agent", HELLO, item=f"{invocation}-{n}", step="0")
                            for n in range(64)
                        ),
                        return_exceptions=True,
                    )
                    refused += sum(isinstance(one, BudgetError) for one in done)
                    rows = llm.rows()
                assert server.billed_tokens <= budget.run.spent.tokens <= limit
            assert refused > 64
            assert server.billed_tokens > (0.5 if faults else 0.9) * limit  # and it is used

    asyncio.run(run())
