"""kill -9 of a process that asks in batches: the same work again finds what was sent, and nothing
is paid for twice."""

import asyncio
import fcntl
import shutil
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from records.errors import ConfigError
from synth.llm.ledger import spent_in
from tests.doubles.batches import BatchDouble
from tests.doubles.catalogue import DOUBLES
from tests.doubles.server import DoubleServer, serve
from tests.killing import killed_everywhere, run
from tests.synth.llm.endpoint.batch_work import ITEMS, ask_all, llm_of, role, rows_in, talk, work

OPENAI = DOUBLES["openai"]
LIMIT = 100_000


def charged(server: DoubleServer) -> int:
    bill = server.tokens(delivered=True)
    return bill.prompt + bill.completion


def check_paid_once(folder: Path, server: DoubleServer) -> None:
    """Every item answered and charged for once, and the ledger says the same."""
    assert len(server.answered) == len(ITEMS)
    rows = rows_in(folder)
    assert sorted(row["item_id"] for row in rows if row["status"] == "ok") == sorted(ITEMS)
    assert spent_in(rows)["judging"].tokens == charged(server)


@pytest.mark.slow
def test_killed_anywhere_nothing_is_paid_twice(tmp_path: Path) -> None:
    batches = BatchDouble()
    with serve(OPENAI, faults=[batches]) as server:
        for killed in killed_everywhere(work, tmp_path, server.url, LIMIT):
            run(work, killed, server.url, LIMIT)
            check_paid_once(killed, server)
            server.answered.clear()


async def stopped_while_it_waits(
    server: DoubleServer, batches: BatchDouble, folder: Path, limit: int | None
) -> int:
    """Tokens reserved when the work was cancelled, its batch under way."""
    batches.held = True
    async with llm_of({"judge": role(server.url)}, folder, limit=limit) as llm:
        waiting = asyncio.create_task(ask_all(llm))
        await asyncio.to_thread(batches.polled.wait)
        reserved = llm._gateway.budget.run.reserved.tokens
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    batches.held = False
    return reserved


async def resumed(server: DoubleServer, folder: Path, limit: int | None) -> None:
    async with llm_of({"judge": role(server.url)}, folder, limit=limit) as llm:
        await ask_all(llm)


@pytest.mark.parametrize("was_limited", [True, False])
def test_what_a_stopped_run_may_have_spent_is_not_counted_beside_what_it_did_spend(
    was_limited: bool, tmp_path: Path
) -> None:
    batches = BatchDouble()

    async def run() -> None:
        before = LIMIT if was_limited else None
        reserved = await stopped_while_it_waits(server, batches, tmp_path, before)
        assert spent_in(rows_in(tmp_path))["judging"].tokens == reserved
        await resumed(server, tmp_path, reserved)  # the limit has room for these three only

    with serve(OPENAI, faults=[batches]) as server:
        asyncio.run(run())
        check_paid_once(tmp_path, server)
    assert len(rows_in(tmp_path)) == len(ITEMS)
    assert batches.sizes == [3]


@pytest.mark.parametrize(
    "known", ["with its id", "by the list", "by its metadata", "never created"]
)
def test_processes_that_go_on_together_share_what_the_last_one_sent(
    known: str, tmp_path: Path
) -> None:
    batches = BatchDouble()

    async def one_process(items: str) -> None:
        """With a journal, a gateway and a connection to the store of its own."""
        async with llm_of({"judge": role(server.url)}, tmp_path, shard=items) as llm:
            await ask_all(llm, items)

    async def run() -> None:
        await stopped_while_it_waits(server, batches, tmp_path, None)
        if known != "with its id":
            with sqlite3.connect(tmp_path / "batches" / "run.sqlite") as store:
                store.execute("UPDATE batches SET batch_id = NULL")
        if known == "by its metadata":
            batches.files["renamed"] = batches.files[batches.batches[0]["input_file_id"]]
            batches.batches[0]["input_file_id"] = "renamed"
        if known == "never created":
            batches.batches.clear()
        batches.batches += [_foreign(number) for number in range(5)]  # pages of two
        await asyncio.gather(one_process("a"), one_process("bc"))

    with serve(OPENAI, faults=[batches]) as server:
        asyncio.run(run())
        answered = len(server.answered)
    ours = [batch for batch in batches.batches if batch["metadata"]]
    assert answered == len(ITEMS)
    assert len(ours) == (2 if known == "never created" else 1)


def test_who_asks_while_another_process_creates_the_batch_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = BatchDouble()
    batches.may_create.clear()
    found_it_locked = threading.Event()
    lock = fcntl.flock

    def flock(handle: Any, how: int) -> None:
        try:
            lock(handle, how)
        except BlockingIOError:
            found_it_locked.set()
            raise

    monkeypatch.setattr("synth.llm.endpoint.batch_store.fcntl.flock", flock)

    async def one_process(shard: str) -> None:
        async with llm_of({"judge": role(server.url)}, tmp_path, shard=shard) as llm:
            await ask_all(llm, "a")

    async def run() -> None:
        first = asyncio.create_task(one_process("first"))
        await asyncio.to_thread(batches.creating.wait)
        second = asyncio.create_task(one_process("second"))
        await asyncio.to_thread(found_it_locked.wait)
        batches.held = True  # until the second has found the batch: no two processes have an item
        batches.may_create.set()
        await asyncio.sleep(2.0)
        batches.held = False
        await asyncio.gather(first, second)

    with serve(OPENAI, faults=[batches]) as server:
        asyncio.run(run())
        assert len(server.answered) == 1
    assert batches.sizes == [1]


def test_a_batch_that_the_server_does_not_know_is_not_paid_again_in_silence(
    tmp_path: Path,
) -> None:
    batches = BatchDouble()

    async def run() -> None:
        await stopped_while_it_waits(server, batches, tmp_path, None)
        batches.batches.clear()
        await resumed(server, tmp_path, None)

    with serve(OPENAI, faults=[batches]) as server:
        with pytest.raises(ConfigError, match="a batch that this run has sent"):
            asyncio.run(run())
        assert batches.sizes == []
        shutil.rmtree(tmp_path / "batches")  # as the error says
        asyncio.run(resumed(server, tmp_path, None))
    assert batches.sizes == [3]


def test_answers_are_read_by_the_form_that_they_were_asked_in(tmp_path: Path) -> None:
    """Though the profile has changed since."""
    batches = BatchDouble()
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}

    async def ask(structured: str, *, stop: bool) -> Any:
        config = role(server.url, profile={"structured": structured})
        batches.held = stop
        async with llm_of({"judge": config}, tmp_path) as llm:
            asked = asyncio.create_task(
                llm.structured("judge", talk("a"), item="a", step="0", name="number", schema=schema)
            )
            if stop:
                await asyncio.to_thread(batches.polled.wait)
                asked.cancel()
            [made] = await asyncio.gather(asked, return_exceptions=stop)
            return made

    with serve(OPENAI, faults=[batches]) as server:
        assert isinstance(asyncio.run(ask("tool", stop=True)), asyncio.CancelledError)
        made = asyncio.run(ask("json_schema", stop=False))
    assert isinstance(made["n"], int)
    assert batches.sizes == [1]


def _foreign(number: int) -> dict[str, Any]:
    return {"id": f"foreign_{number}", "input_file_id": "file-0f", "metadata": None}
