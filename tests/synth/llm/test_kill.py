"""kill -9 in the middle: what was answered is not paid again, and nothing spent is forgotten."""

import asyncio
import multiprocessing
import os
import signal
from pathlib import Path

import pytest

from records.store.journal import ShardJournal
from synth.llm.budget import Budget
from synth.llm.client import LLM
from synth.llm.gateway import Gateway
from synth.llm.ledger import journalled_rows, spent_in
from synth.llm.settings.config import BudgetConfig
from tests.synth.llm.server import answer, serve
from tests.synth.llm.test_client import HELLO, role

ITEMS, STEPS, LIMIT = 8, 6, 100_000


async def work(url: str, journal: Path) -> None:
    """8 items at once, each asks 6 times in a row."""
    with ShardJournal(journal) as shard:
        spent = spent_in(journalled_rows(shard))
        budget = Budget(BudgetConfig(tokens=LIMIT), spent)
        async with Gateway({"agent": role(url)}, budget=budget) as gateway:
            llm = LLM(gateway, shard, stage="rollouts", invocation_id=str(os.getpid()))

            async def item(number: int) -> None:
                for step in range(STEPS):
                    await llm.chat("agent", HELLO, item=f"i{number}", step=str(step))

            await asyncio.gather(*(item(number) for number in range(ITEMS)))


def child(url: str, journal: Path) -> None:
    asyncio.run(work(url, journal))


@pytest.mark.slow
def test_kill_pays_at_most_what_was_in_flight_twice(tmp_path: Path) -> None:
    journal = tmp_path / "shard.sqlite"
    spawn = multiprocessing.get_context("spawn")

    async def run() -> None:
        async with serve(lambda *_: answer(usage=(40, 10)), lambda _: 0.01) as server:
            process = spawn.Process(target=child, args=(server.url, journal))
            process.start()
            assert process.pid is not None
            await server.reached(20)
            os.kill(process.pid, signal.SIGKILL)
            await asyncio.to_thread(process.join)
            billed, sent = server.billed, len(server.requests)
            with ShardJournal(journal) as shard:
                rows = journalled_rows(shard)
            answered = sum(row["status"] == "ok" for row in rows)
            assert sent - ITEMS <= answered <= billed
            # the requests in flight stand in the journal, so the count is never below the server's
            assert server.billed_tokens <= spent_in(rows)["rollouts"].tokens <= LIMIT
            await work(server.url, journal)
            assert len(server.requests) - sent == ITEMS * STEPS - answered
            with ShardJournal(journal) as shard:
                assert server.billed_tokens <= spent_in(journalled_rows(shard))["rollouts"].tokens

    asyncio.run(run())
