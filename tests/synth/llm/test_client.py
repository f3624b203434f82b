"""The client against a real server that fails: what is retried, billed, cached and said."""

import asyncio
import logging
import random
import traceback
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from records.errors import (
    ConfigError,
    ItemError,
    SynthError,
    TransientError,
    UnavailableError,
)
from records.store.journal import ShardJournal
from records.tables.tables import TABLES
from synth.llm.budget import Budget
from synth.llm.client import LLM, Completion
from synth.llm.gateway import Gateway
from synth.llm.ledger import journalled_rows, spent_in
from synth.llm.settings.config import BudgetConfig, ModelConfig, RoleConfig
from tests.synth.llm.server import Body, Fault, Script, answer, serve

HELLO = [{"role": "user", "content": "hello"}]
TOOLS = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}]


def role(url: str, **changes: Any) -> RoleConfig:
    settings: dict[str, Any] = {
        "base_url": url,
        "models": [{"name": "m"}],
        "max_tokens": 50,
        "backoff_s": 0.001,
        "usd_per_million_prompt": 1.0,
        "usd_per_million_completion": 4.0,
    }
    return RoleConfig(**settings | changes)


@asynccontextmanager
async def llm_of(
    config: RoleConfig, folder: Path, *, budget: Budget | None = None, patience_s: float = 5.0
) -> AsyncIterator[LLM]:
    with ShardJournal(folder / "shard.sqlite") as journal:
        roles = {"agent": config}
        async with Gateway(roles, budget=budget, patience_s=patience_s) as gateway:
            yield LLM(gateway, journal, stage="rollouts", invocation_id="inv")


def ask_once(script: Script, folder: Path, **changes: Any) -> tuple[Completion, list[Any], int]:
    """(answer, ledger rows, requests that the server saw) of one chat."""

    async def run() -> tuple[Completion, list[Any], int]:
        async with serve(script) as server, llm_of(role(server.url, **changes), folder) as llm:
            done = await llm.chat("agent", HELLO, item="i", step="0")
            return done, llm.rows(), len(server.requests)

    return asyncio.run(run())


def test_request_says_what_a_hosted_model_needs(tmp_path: Path) -> None:
    async def run() -> tuple[Body, Mapping[str, str]]:
        async with serve() as server:
            config = role(server.url, temperature=0.5, top_p=0.9, extra_body={"top_k": 5})
            async with llm_of(config, tmp_path) as llm:
                said = {"role": "assistant", "content": "x", "reasoning_content": "private"}
                await llm.chat("agent", [*HELLO, said], item="i", step="0", tools=TOOLS)
                return server.requests[0], server.headers[0]

    body, headers = asyncio.run(run())
    seed = body.pop("seed")
    assert 0 <= seed < 2**31
    assert body == {
        "model": "m",
        "messages": [*HELLO, {"role": "assistant", "content": "x"}],
        "max_tokens": 50,
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 5,
        "tools": TOOLS,
    }
    assert headers["Content-Type"] == "application/json"


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        (Fault(429, headers={"Retry-After": "0.01"}), "rate_limited"),
        (Fault(500, b'{"error": {"message": "boom"}}'), "server_error"),
        (Fault(503, b"<html>busy</html>"), "overloaded"),
        (Fault(529), "overloaded"),
        (Fault(hang_s=5.0), "timeout"),
        (Fault(504), "timeout"),
        (Fault(reset=True), "connection_lost"),
        (Fault(body=b'{"choices": [{"message": {"content": "cut o'), "bad_body"),
        (Fault(body=b"[" * 100_000), "bad_body"),
        (Fault(body=b'{"error": {"message": "overloaded"}}'), "bad_body"),
        (Fault(body=b'{"choices": []}'), "bad_body"),
        (Fault(body=b"", headers={"Content-Type": "text/html"}), "bad_body"),
        (Fault(body=b"xx", headers={"Content-Encoding": "gzip"}), "connection_lost"),
    ],
)
def test_failure_that_may_pass_is_retried_and_logged(
    fault: Fault, status: str, tmp_path: Path
) -> None:
    def script(number: int, body: Body) -> Body | Fault:
        return fault if number < 2 else answer()

    done, rows, requests = ask_once(script, tmp_path, timeout_s=0.2)
    assert done.content == "fine"
    assert [row["status"] for row in rows] == [status, status, "ok"]
    assert requests == 3
    billed = status in ("timeout", "connection_lost", "bad_body")
    assert (rows[0]["cost_usd"] > 0) == billed  # what may have been charged counts in full
    assert rows[0]["completion_tokens"] == (50 if billed else 0)
    assert rows[2]["cost_usd"] == pytest.approx((7 * 1.0 + 3 * 4.0) / 1e6)


def test_answer_without_end_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("synth.llm.endpoint.connection.MAX_ANSWER_BYTES", 10_000)
    with pytest.raises(TransientError, match="longer than 10000 bytes"):
        ask_once(lambda *_: answer("x" * 10_000), tmp_path, retries=0)
    done, _, _ = ask_once(lambda *_: answer("x" * 9_000), tmp_path)
    assert len(done.content) == 9_000


def test_retries_are_bounded(tmp_path: Path) -> None:
    async def run() -> int:
        async with serve(lambda *_: Fault(500)) as server:
            async with llm_of(role(server.url, retries=2), tmp_path) as llm:
                with pytest.raises(TransientError, match=r"3 of 3 tries .* answered 500"):
                    await llm.chat("agent", HELLO, item="i", step="0")
            return len(server.requests)

    assert asyncio.run(run()) == 3


def test_retry_after_is_honoured(tmp_path: Path) -> None:
    arrivals: list[float] = []

    def script(number: int, body: Body) -> Body | Fault:
        arrivals.append(asyncio.get_running_loop().time())
        return Fault(429, headers={"Retry-After": "0.3"}) if number == 0 else answer()

    ask_once(script, tmp_path)
    assert arrivals[1] - arrivals[0] >= 0.3


def test_retry_after_of_an_hour_is_not_waited_for_without_patience(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match=r"waits no longer \(outage_s\); .* answered 429"):
        ask_once(lambda *_: Fault(429, headers={"Retry-After": "3600"}), tmp_path)


def test_rows_that_are_taken_come_once(tmp_path: Path) -> None:
    async def run() -> tuple[list[Any], list[Any], list[Any]]:
        async with serve() as server, llm_of(role(server.url), tmp_path) as llm:
            await llm.chat("agent", HELLO, item="i", step="0")
            first = llm.take_rows()
            await llm.chat("agent", HELLO, item="i", step="1")
            return first, llm.take_rows(), llm.rows()

    first, second, left = asyncio.run(run())
    assert ([row["step"] for row in (*first, *second)], left) == (["0", "1"], [])


def test_unreachable_endpoint_costs_nothing(tmp_path: Path) -> None:
    async def run() -> list[Any]:
        config = role("http://127.0.0.1:9/v1", retries=1)
        async with llm_of(config, tmp_path, patience_s=0.5) as llm:
            with pytest.raises(UnavailableError, match="Connect call failed"):
                await llm.chat("agent", HELLO, item="i", step="0")
            return llm.rows()

    rows = asyncio.run(run())
    assert len(rows) >= 3
    assert {(r["status"], r["cost_usd"]) for r in rows} == {("unreachable", 0.0)}


@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        (Fault(401, b'{"error": {"message": "no"}}'), ConfigError, "answered 401.*set api_key_env"),
        (Fault(404, b'{"error": {"message": "no model m"}}'), ConfigError, "404.*no model m"),
        (Fault(307, headers={"Location": "https://x/v1"}), ConfigError, "base_url to 'https://x"),
        (
            Fault(429, b'{"error": {"message": "pay", "code": "insufficient_quota"}}'),
            ConfigError,
            "no credit or quota left",
        ),
        (Fault(400, b'{"error": {"message": "too long"}}'), ItemError, "400: .*too long"),
        (Fault(422, b'{"error": {"message": "bad"}}'), ItemError, "422"),
    ],
)
def test_refusal_is_not_retried(
    fault: Fault, kind: type[SynthError], words: str, tmp_path: Path
) -> None:
    seen: list[int] = []

    def script(number: int, body: Body) -> Fault:
        seen.append(number)
        return fault

    with pytest.raises(kind, match=words):
        ask_once(script, tmp_path)
    assert seen == [0]


def test_key_is_sent_and_never_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    secret = "sk-secret-4711"
    monkeypatch.setenv("TEST_KEY", secret)
    monkeypatch.setenv("OPENAI_ORG_ID", "org-ambient")
    caplog.set_level(logging.DEBUG)
    headers: list[dict[str, str]] = []

    async def run() -> str:
        echo = Fault(401, f'{{"error": {{"message": "bad key {secret}"}}}}'.encode())
        async with (
            serve(lambda *_: echo) as server,
            llm_of(role(server.url, api_key_env="TEST_KEY"), tmp_path) as llm,
        ):
            try:
                await llm.chat("agent", HELLO, item="i", step="0")
            except ConfigError as error:
                headers.extend(server.headers)
                return "".join(traceback.format_exception(error)) + str(llm.rows())
        raise AssertionError("no error")

    shown = asyncio.run(run())
    assert headers[0]["Authorization"] == f"Bearer {secret}"
    assert "OpenAI-Organization" not in headers[0]
    assert "[key]" in shown
    assert "TEST_KEY" in shown
    assert secret not in shown
    assert secret not in caplog.text
    assert secret.encode() not in (tmp_path / "shard.sqlite").read_bytes()


def test_ambient_openai_key_is_not_sent_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-ambient")

    async def run() -> Mapping[str, str]:
        async with serve() as server, llm_of(role(server.url), tmp_path) as llm:
            await llm.chat("agent", HELLO, item="i", step="0")
            return server.headers[0]

    assert "sk-ambient" not in str(asyncio.run(run()))


def test_missing_key_is_refused_before_any_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TEST_KEY", raising=False)
    with pytest.raises(ConfigError, match=r"roles\.agent\.api_key_env names TEST_KEY"):
        Gateway({"agent": role("http://x/v1", api_key_env="TEST_KEY")})


def test_answers_of_hosted_models_in_all_their_forms(tmp_path: Path) -> None:
    calls = [
        {"id": "a", "type": "function", "function": {"name": "add", "arguments": '{"x": 1}'}},
        {"id": "a", "type": "function", "function": {"name": "add", "arguments": "{broken"}},
        {"type": "function", "function": {"name": "add", "arguments": {"x": "\u00e9"}}},
        "nonsense",
    ]
    message = answer(None, tool_calls=calls, reasoning_content="hm", finish_reason="tool_calls")
    done, _, _ = ask_once(lambda *_: message, tmp_path)
    ids = [call["id"] for call in done.tool_calls]
    assert ids[0] == "a"
    assert len(set(ids)) == 4
    assert all(call["type"] == "function" for call in done.tool_calls)
    functions = [call["function"] for call in done.tool_calls]
    assert [f["arguments"] for f in functions] == ['{"x": 1}', "{broken", '{"x": "\u00e9"}', ""]
    assert [f["name"] for f in functions] == ["add", "add", "add", ""]
    assert (done.content, done.reasoning, done.finish_reason) == ("", "hm", "tool_calls")


@pytest.mark.parametrize(
    ("message", "content", "finish_reason"),
    [
        (answer(None), "", "stop"),
        (answer(None, refusal="I cannot"), "I cannot", "stop"),
        (answer([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]), "ab", "stop"),  # type: ignore[arg-type]
        (answer("lone \ud800 surrogate"), "lone ? surrogate", "stop"),
        (answer("x", finish_reason=None), "x", "stop"),
    ],
)
def test_content_is_always_text(
    message: Body, content: str, finish_reason: str, tmp_path: Path
) -> None:
    done, _, _ = ask_once(lambda *_: message, tmp_path)
    assert (done.content, done.finish_reason) == (content, finish_reason)


@pytest.mark.parametrize("lacking", [0, 1, 2, 3])
def test_answer_that_is_cut_is_asked_again_with_more_room(lacking: int, tmp_path: Path) -> None:
    rooms: list[int] = []

    def script(number: int, body: Body) -> Body:
        rooms.append(body["max_tokens"])
        return answer("cut", finish_reason="length") if number < lacking else answer()

    if lacking < 3:
        done, rows, _ = ask_once(script, tmp_path)
        assert done.content == "fine"
        assert len({row["request_hash"] for row in rows}) == lacking + 1
    else:
        with pytest.raises(ItemError, match=r"cut off at 3 tokens.*max_tokens") as caught:
            ask_once(script, tmp_path)
        assert caught.value.reason == "cut_off"
    assert rooms == [50, 100, 200][: lacking + 1]


def test_no_more_room_is_asked_for_than_the_profile_allows(tmp_path: Path) -> None:
    rooms: list[int] = []

    def script(number: int, body: Body) -> Body:
        rooms.append(body["max_tokens"])
        return answer("cut", finish_reason="length")

    with pytest.raises(ItemError, match="cut off"):
        ask_once(script, tmp_path, profile={"max_output_tokens": 80})
    assert rooms == [50, 80]


def test_forbidden_text_is_the_items_and_a_forbidden_key_the_runs(tmp_path: Path) -> None:
    def moderated(number: int, body: Body) -> Body | Fault:
        said = b'{"error": {"message": "Your input was flagged by moderation", "code": 403}}'
        return Fault(403, said) if body["messages"] == HELLO else answer()

    with pytest.raises(ItemError, match="answered 403: Your input was flagged") as caught:
        ask_once(moderated, tmp_path)
    assert caught.value.reason == "moderated"
    with pytest.raises(ConfigError, match=r"answered 403.*set api_key_env"):
        ask_once(lambda *_: Fault(403), tmp_path)


@pytest.mark.parametrize("usage", [None, (-1, 3), (True, 3)])
def test_usage_that_is_not_reported_counts_with_its_worst_case(
    usage: tuple[int, int] | None, tmp_path: Path
) -> None:
    done, rows, _ = ask_once(lambda *_: answer(usage=usage), tmp_path)
    assert done.prompt_tokens > 50  # the bytes of the body
    assert rows[0]["prompt_tokens"] == done.prompt_tokens


def test_resume_after_a_kill_pays_nothing_twice(tmp_path: Path) -> None:
    """The first run stops in the middle; the second asks all again and only new ones are sent."""

    async def run() -> None:
        async with serve() as server:
            async with llm_of(role(server.url), tmp_path) as llm:
                for step in range(3):
                    await llm.chat("agent", HELLO, item="i", step=str(step))
                first = llm.rows()  # lost with the process
            async with llm_of(role(server.url), tmp_path) as llm:
                again = [await llm.chat("agent", HELLO, item="i", step=str(n)) for n in range(5)]
                rows = llm.rows()
            assert server.billed == 5
            assert [done.cached for done in again] == [True] * 3 + [False] * 2
            assert rows[:3] == first
            assert [row["cache_hit"] for row in rows[3:]] == [True] * 3 + [False] * 2
            paid = [row for row in rows if not row["cache_hit"]]
            assert sum(row["prompt_tokens"] + row["completion_tokens"] for row in paid) == (
                server.billed_tokens
            )
            assert all(row["cost_usd"] == 0.0 for row in rows if row["cache_hit"])
            columns = set(TABLES["llm_calls"].schema.names) - {"run_id", "schema_version"}
            assert all(set(row) == columns for row in rows)
            assert len({row["call_id"] for row in rows}) == len(rows)

    asyncio.run(run())


def test_ceiling_holds_by_the_servers_own_count(tmp_path: Path) -> None:
    async def run() -> int:
        async with serve(latency_s=lambda _: 0.005) as server:
            async with llm_of(role(server.url, max_in_flight=12), tmp_path) as llm:
                chats = (llm.chat("agent", HELLO, item=f"i{n}", step="0") for n in range(100))
                await asyncio.gather(*chats)
            return server.most_in_flight

    assert 10 <= asyncio.run(run()) <= 12


def test_place_is_part_of_the_cache_key(tmp_path: Path) -> None:
    async def run() -> int:
        async with serve() as server, llm_of(role(server.url), tmp_path) as llm:
            for item, step in (("i", "0"), ("i", "1"), ("j", "0"), ("i", "0")):
                await llm.chat("agent", HELLO, item=item, step=step)
            return server.billed

    assert asyncio.run(run()) == 3


def test_request_in_flight_at_a_kill_counts_with_its_worst_case(tmp_path: Path) -> None:
    """Cancelling in mid request leaves what a kill leaves: a mark that it was sent."""

    async def run() -> None:
        async with serve(lambda *_: Fault(hang_s=30)) as server:
            budget = Budget(BudgetConfig(usd=1.0))
            async with llm_of(role(server.url), tmp_path, budget=budget) as llm:
                task = asyncio.create_task(llm.chat("agent", HELLO, item="i", step="0"))
                await server.reached(1)
                with ShardJournal(tmp_path / "copy.sqlite") as copy:  # as the kill would leave it
                    for response in vars(llm)["_journal"].remembered():
                        copy.remember("x", response)
                    before = spent_in(journalled_rows(copy))
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                assert budget.run.spent == before["rollouts"]
                assert budget.run.spent.tokens > 50
                assert budget.run.reserved.tokens == 0

    asyncio.run(run())


def test_ledger_journal_and_budget_agree(tmp_path: Path) -> None:
    dice = random.Random(0)
    faults = [Fault(429), Fault(500), Fault(reset=True), Fault(body=b'{"cho'), Fault(504)]

    def script(number: int, body: Body) -> Body | Fault:
        if dice.random() < 0.4:
            return dice.choice(faults)
        return answer(usage=(dice.randrange(60), dice.randrange(50)))

    async def run() -> None:
        async with serve(script) as server:
            budget = Budget(BudgetConfig(tokens=10**9))
            async with llm_of(role(server.url, retries=20), tmp_path, budget=budget) as llm:
                await asyncio.gather(
                    *(llm.chat("agent", HELLO, item=f"i{n}", step="0") for n in range(60))
                )
                rows = llm.rows()
                journalled = journalled_rows(vars(llm)["_journal"])
            assert len(rows) == len(server.requests)
            assert sum(row["status"] == "ok" for row in rows) == server.billed == 60
            spent = spent_in(rows)["rollouts"]
            assert spent.tokens == budget.run.spent.tokens
            assert spent.tokens >= server.billed_tokens
            assert spent_in(journalled)["rollouts"].tokens == spent.tokens
            assert spent_in([*rows, *journalled])["rollouts"].tokens == spent.tokens
            assert spent.usd == pytest.approx(budget.run.spent.usd)

    asyncio.run(run())


def test_shuffled_latencies_change_no_answer(tmp_path: Path) -> None:
    """Answers hang on the request alone, in whatever order they come."""

    def echo(number: int, body: Body) -> Body:
        return answer(f"{body['messages'][0]['content']} {body['model']} {body['seed']}")

    async def run(seed: int, in_flight: int) -> list[Completion]:
        dice = random.Random(seed)
        models = [ModelConfig(name="a", weight=3), ModelConfig(name="b")]
        async with serve(echo, lambda body: dice.random() / 50) as server:
            config = role(server.url, models=models, max_in_flight=in_flight)
            folder = tmp_path / str(seed)
            async with llm_of(config, folder) as llm:
                return await asyncio.gather(
                    *(
                        llm.chat(
                            "agent", [HELLO[0] | {"content": f"say {n}"}], item=f"i{n}", step="0"
                        )
                        for n in range(40)
                    )
                )

    assert asyncio.run(run(1, 4)) == asyncio.run(run(2, 64))


def test_offline_provider_goes_through_the_same_client(tmp_path: Path) -> None:
    bodies: list[Body] = []

    async def chat(request: Request) -> JSONResponse:
        bodies.append(await request.json())
        if len(bodies) == 1:
            raise RuntimeError("a bug of the provider is a 500, as it would be behind a socket")
        return JSONResponse(answer("in process"))

    async def run() -> Completion:
        app = Starlette(routes=[Route("/v1/chat/completions", chat, methods=["POST"])])
        config = role("offline", timeout_s=1.0)
        with ShardJournal(tmp_path / "shard.sqlite") as journal:
            async with Gateway({"agent": config}, offline_app=lambda: app) as gateway:
                llm = LLM(gateway, journal, stage="rollouts", invocation_id="inv")
                return await llm.chat("agent", HELLO, item="i", step="0")

    assert asyncio.run(run()).content == "in process"
    assert len(bodies) == 2


def test_provider_in_process_that_hangs_is_timed_out(tmp_path: Path) -> None:
    async def hang(request: Request) -> JSONResponse:
        await asyncio.sleep(30)
        return JSONResponse({})

    async def run() -> None:
        app = Starlette(routes=[Route("/v1/chat/completions", hang, methods=["POST"])])
        config = role("offline", timeout_s=0.05, retries=1)
        with ShardJournal(tmp_path / "shard.sqlite") as journal:
            async with Gateway({"agent": config}, offline_app=lambda: app) as gateway:
                llm = LLM(gateway, journal, stage="rollouts", invocation_id="inv")
                with pytest.raises(TransientError, match=r"timeout: offline: no answer in 0\.05 s"):
                    await llm.chat("agent", HELLO, item="i", step="0")

    asyncio.run(run())


def test_offline_without_a_provider_and_unknown_role_say_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no provider is embedded"):
        Gateway({"agent": role("offline")})
    gateway = Gateway({"agent": role("http://x/v1")})
    with pytest.raises(ConfigError, match=r"role 'judge', only for \['agent'\]"):
        gateway.role("judge")


def test_text_that_cannot_be_sent_is_the_items_fault(tmp_path: Path) -> None:
    async def run() -> None:
        async with llm_of(role("http://127.0.0.1:9/v1"), tmp_path) as llm:
            with pytest.raises(ItemError, match="unsendable_request"):
                await llm.chat("agent", [{"role": "user", "content": "\ud800"}], item="i", step="0")

    asyncio.run(run())
