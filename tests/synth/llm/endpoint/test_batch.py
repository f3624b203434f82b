"""Batches against a real batch endpoint: what is sent together, read, refused and asked again."""

import asyncio
import json
import logging
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from records.errors import ConfigError, ItemError, TransientError
from tests.doubles.batches import BatchDouble, Body, End
from tests.doubles.catalogue import DOUBLES
from tests.doubles.server import DoubleServer, serve
from tests.synth.llm.endpoint.batch_work import ITEMS, QUICK, ask_all, llm_of, role, talk

OPENAI = DOUBLES["openai"]
BUSY: Body = {"error": {"message": "Rate limit reached.", "code": "rate_limit_exceeded"}}


def asked(server: DoubleServer, folder: Path, **changes: Any) -> tuple[list[str], list[Any]]:
    """The answers of all items and the ledger's rows."""

    async def run() -> tuple[list[str], list[Any]]:
        async with llm_of({"judge": role(server.url, **changes)}, folder, limit=100_000) as llm:
            return await ask_all(llm), llm.rows()

    return asyncio.run(run())


def test_what_waits_together_goes_in_one_batch_and_is_answered_as_ever(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "synth")
    batches = BatchDouble()
    with serve(OPENAI, faults=[batches]) as server:
        (tmp_path / "direct").mkdir()
        direct, plain = asked(server, tmp_path / "direct", batch=False)
        assert batches.sizes == []
        answers, rows = asked(server, tmp_path)
    assert answers == direct
    assert batches.sizes == [3]
    paid = ("status", "prompt_tokens", "completion_tokens", "cost_usd")
    batched, at_once = (
        sorted((row["item_id"], *(row[column] for column in paid)) for row in written)
        for written in (rows, plain)
    )
    assert batched == at_once
    said = [record.getMessage() for record in caplog.records]
    assert any("sent batch batch_0 (offline-model, requests: 3)" in line for line in said)
    assert any("batch batch_0 is completed (answers: 3)" in line for line in said)


def test_answers_are_in_the_journal_and_asked_for_no_more(tmp_path: Path) -> None:
    batches = BatchDouble()
    with serve(OPENAI, faults=[batches]) as server:
        first, _ = asked(server, tmp_path)
        again, rows = asked(server, tmp_path)
    assert first == again
    assert batches.sizes == [3]
    assert sum(row["cache_hit"] for row in rows) == 3


def test_a_full_collection_does_not_wait_and_each_model_has_its_own(tmp_path: Path) -> None:
    batches = BatchDouble()
    pace = QUICK._replace(quiet_s=0.3, most_requests=2)

    async def run(url: str) -> None:
        configs = {"judge": role(url), "generator": role(url, models=["offline-model-exact"])}
        async with llm_of(configs, tmp_path, pace=pace) as llm:
            await asyncio.gather(ask_all(llm, "abcde"), ask_all(llm, "fg", role="generator"))

    with serve(OPENAI, faults=[batches]) as server:
        asyncio.run(run(server.url))
    assert sorted(batches.sizes) == [1, 2, 2, 2]


def test_no_slot_is_held_while_a_batch_is_waited_for(tmp_path: Path) -> None:
    batches = BatchDouble()
    batches.held = True

    async def run(url: str) -> None:
        configs = {
            "judge": role(url, max_in_flight=1),
            "agent": role(url, max_in_flight=1, batch=False),
        }
        async with llm_of(configs, tmp_path) as llm:
            waiting = asyncio.create_task(ask_all(llm))
            await asyncio.to_thread(batches.polled.wait)
            await llm.chat("agent", talk("z"), item="z", step="0")
            assert not waiting.done()
            batches.held = False
            await waiting

    with serve(OPENAI, faults=[batches]) as server:
        asyncio.run(run(server.url))
    assert batches.sizes == [3]


def test_every_request_of_a_batch_is_reserved_until_it_is_back(tmp_path: Path) -> None:
    batches = BatchDouble()
    batches.held = True

    async def run(url: str) -> None:
        async with llm_of({"judge": role(url)}, tmp_path, limit=100_000) as llm:
            account = llm._gateway.budget.run
            waiting = asyncio.create_task(ask_all(llm))
            await asyncio.to_thread(batches.polled.wait)
            lines = [json.loads(line) for line in batches.files["file-0"].splitlines()]
            sizes = [len(json.dumps(line["body"], separators=(",", ":"))) for line in lines]
            assert account.reserved.tokens == sum(sizes) + 50 * len(lines)
            batches.held = False
            await waiting
            assert account.reserved.tokens == 0
            assert account.spent.tokens == sum(
                row["prompt_tokens"] + row["completion_tokens"] for row in llm.rows()
            )

    with serve(OPENAI, faults=[batches]) as server:
        asyncio.run(run(server.url))


@pytest.mark.parametrize(
    ("end", "sizes", "status"),
    [
        ("failed", [3, 3], "server_error"),
        ("limit", [3, 3], "rate_limited"),
        ("expired", [3, 2], "server_error"),
        ("cancelled", [3, 2], "server_error"),
    ],
)
def test_what_a_batch_did_not_run_costs_nothing_and_goes_in_the_next(
    end: End, sizes: list[int], status: str, tmp_path: Path
) -> None:
    batches = BatchDouble(ends=(end,))
    with serve(OPENAI, faults=[batches]) as server:
        answers, rows = asked(server, tmp_path)
        charged = server.tokens(delivered=True)
    assert len(answers) == 3
    assert batches.sizes == sizes
    failed = [row for row in rows if row["status"] != "ok"]
    assert [row["status"] for row in failed] == [status] * sizes[1]
    assert all(row["cost_usd"] == row["prompt_tokens"] == 0 for row in failed)
    assert sum(row["prompt_tokens"] for row in rows) == charged.prompt
    assert sum(row["completion_tokens"] for row in rows) == charged.completion


def test_a_batch_that_always_fails_ends_with_the_words_of_the_server(tmp_path: Path) -> None:
    batches = BatchDouble(ends=("failed",) * 10)
    with (
        serve(OPENAI, faults=[batches]) as server,
        pytest.raises(TransientError, match=r"3 of 3 tries failed.*Line 1 could not be parsed"),
    ):
        asked(server, tmp_path, retries=2)
    assert batches.sizes == [3, 3, 3]


def test_a_line_with_429_goes_in_the_next_batch(tmp_path: Path) -> None:
    busy: list[str] = []

    def fault(batch: int, custom_id: str) -> tuple[int, Body] | None:
        if batch == 0 and not busy:
            busy.append(custom_id)
            return 429, BUSY
        return None

    batches = BatchDouble(line_fault=fault)
    with serve(OPENAI, faults=[batches]) as server:
        _, rows = asked(server, tmp_path)
    assert batches.sizes == [3, 1]
    assert [row["status"] for row in rows].count("rate_limited") == 1
    assert json.loads(batches.files[batches.batches[1]["input_file_id"]])["custom_id"] == busy[0]


def test_a_line_that_refuses_a_field_changes_the_profile(tmp_path: Path) -> None:
    def fault(batch: int, custom_id: str) -> tuple[int, Body] | None:
        said = {"message": "Unknown parameter: 'seed'.", "param": "seed", "type": "invalid"}
        return (400, {"error": said}) if batch == 0 else None

    batches = BatchDouble(line_fault=fault)
    with serve(OPENAI, faults=[batches]) as server:
        _, rows = asked(server, tmp_path)
    bodies = [
        [json.loads(line)["body"] for line in batches.files[batch["input_file_id"]].splitlines()]
        for batch in batches.batches
    ]
    assert [["seed" in body for body in batch] for batch in bodies] == [[True] * 3, [False] * 3]
    assert "seed: true -> false" in {row["fallback"] for row in rows}


def test_a_line_about_the_text_is_the_items_own_failure(tmp_path: Path) -> None:
    said = {"error": {"message": "flagged", "code": "content_policy_violation"}}
    batches = BatchDouble(line_fault=lambda batch, custom_id: (400, said))
    with serve(OPENAI, faults=[batches]) as server, pytest.raises(ItemError) as caught:
        asked(server, tmp_path)
    assert caught.value.reason == "moderated"


def test_a_line_with_403_is_the_items_own_where_others_are_let_in(tmp_path: Path) -> None:
    said = {"error": {"message": "Your input was flagged.", "code": 403}}
    batches = BatchDouble(line_fault=lambda batch, custom_id: (403, said))
    with serve(OPENAI, faults=[batches]) as server:
        with pytest.raises(ItemError) as caught:
            asked(server, tmp_path)
        assert server.answered  # a harmless question, which waits for no batch
    assert caught.value.reason == "moderated"
    assert batches.sizes == [3]


def test_an_outage_while_a_batch_is_waited_for_is_waited_out(tmp_path: Path) -> None:
    batches = BatchDouble()
    batches.held = True

    async def run() -> list[str]:
        async with llm_of({"judge": role(server.url)}, tmp_path) as llm:
            waiting = asyncio.create_task(ask_all(llm))
            await asyncio.to_thread(batches.polled.wait)
            thread = server.thread
            assert thread is not None
            await asyncio.to_thread(thread.run, server.stop())
            batches.held = False
            await asyncio.sleep(0.3)
            await asyncio.to_thread(thread.run, server.start())
            return await waiting

    with serve(OPENAI, faults=[batches]) as server:
        assert len(asyncio.run(run())) == 3
    assert batches.sizes == [3]


def test_a_batch_never_streams(tmp_path: Path) -> None:
    batches = BatchDouble()
    with serve(OPENAI, faults=[batches]) as server:
        answers, _ = asked(server, tmp_path, profile={"stream": True})
    assert len(answers) == 3
    assert batches.sizes == [3]


def test_an_endpoint_without_batches_is_refused_at_the_first_use(tmp_path: Path) -> None:
    with serve(OPENAI) as server:
        with pytest.raises(ConfigError, match=r"roles\.judge\.batch.*has no batches"):
            asked(server, tmp_path)
        answers, _ = asked(server, tmp_path, batch=False)
    assert len(answers) == 3


def test_files_without_batches_leave_nothing_behind(tmp_path: Path) -> None:
    class OnlyFiles(BatchDouble):
        async def __call__(self, request: Any, handler: Any) -> Any:
            if "/batches" in request.path:
                return await handler(request)
            return await super().__call__(request, handler)

    said = r"roles\.judge\.batch.*has no batches"
    with serve(OPENAI, faults=[OnlyFiles()]) as server, pytest.raises(ConfigError, match=said):
        asked(server, tmp_path)
    with sqlite3.connect(tmp_path / "batches" / "run.sqlite") as store:
        assert store.execute("SELECT count(*) FROM requests").fetchone() == (0,)


def test_a_creation_whose_answer_was_lost_is_not_made_twice(tmp_path: Path) -> None:
    batches = BatchDouble(lost_creations=1)
    with serve(OPENAI, faults=[batches]) as server:
        asked(server, tmp_path)
        assert len(server.answered) == len(ITEMS)
    assert batches.sizes == [3]
    assert batches.asked["POST batches"] == 1


def test_a_busy_endpoint_is_asked_for_the_batch_until_it_answers(tmp_path: Path) -> None:
    failing = iter(["upload", "create", "poll", "poll", "content"])
    left = next(failing)

    class Busy(BatchDouble):
        async def __call__(self, request: Any, handler: Any) -> Any:
            nonlocal left
            path, method = request.path, request.method
            what = {
                "upload": path.endswith("/files"),
                "create": method == "POST" and path.endswith("/batches"),
                "poll": method == "GET" and "/batches/" in path,
                "content": path.endswith("/content"),
            }
            if what.get(left):
                left = next(failing, "")
                return await _busy()
            return await super().__call__(request, handler)

    batches = Busy()
    with serve(OPENAI, faults=[batches]) as server:
        answers, _ = asked(server, tmp_path)
    assert left == ""
    assert len(answers) == 3
    assert batches.sizes == [3]


async def _busy() -> Any:
    return web.json_response(BUSY, status=503, headers={"Retry-After": "0.01"})
