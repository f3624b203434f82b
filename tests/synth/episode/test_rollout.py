"""Rollouts: what a trajectory's row says, and that nothing is lost or paid twice."""

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from offline_llm.jobs import answer_of
from offline_llm.server.request import parse_chat
from offline_llm.server.response import completion
from offline_llm.settings.settings import OfflineSettings
from records.errors import BudgetError
from records.store.journal import ShardJournal
from records.tables.schemas import Row
from records.tables.tables import TABLES
from synth.engine.stages import ItemResult
from synth.episode.rollout import (
    RolloutConfig,
    assistant_message,
    plan_rollouts,
    run_rollout,
)
from synth.llm.client import Completion
from synth.llm.settings.config import ModelConfig, RoleConfig
from tests import killing
from tests.synth.clinic import CANCEL, QUIET, TASK, calls, catalogue
from tests.synth.llm.server import Server, serve
from tests.synth.rollout_work import STORMY, rollouts, rows_in, work, work_played
from tests.synth.scripted import ROLES, ScriptedApp, model


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Row]]:
    return asyncio.run(rollouts(tmp_path_factory.mktemp("played"), "offline", 12, 4))


def test_rows_have_exactly_the_columns_of_their_tables(played: dict[str, list[Row]]):
    for table, rows in played.items():
        columns = set(TABLES[table].schema.names) - {"run_id", "schema_version"}
        assert rows
        assert all(set(row) == columns for row in rows)


def test_the_offline_agent_does_the_task_and_meets_errors_on_the_way(played: dict[str, list[Row]]):
    trajectories = played["trajectories"]
    passed = [t for t in trajectories if t["outcome"] == "passed"]
    assert len(passed) >= len(trajectories) / 2
    assert {t["objective_reward"] for t in passed} == {1.0}
    assert sum(t["num_recovered"] > 0 for t in trajectories) >= 3
    assert sum(t["num_user_turns"] >= 2 for t in passed) >= len(passed) - 1  # one may leave early


def test_messages_and_calls_of_a_row_agree(played: dict[str, list[Row]]):
    for t in played["trajectories"]:
        own = [c for c in played["tool_calls"] if c["trajectory_id"] == t["trajectory_id"]]
        messages = t["messages"]
        assert [c["call_index"] for c in own] == list(range(t["num_tool_calls"]))
        assert [c["tool_call_id"] for c in own] == [f"call_{i}" for i in range(len(own))]
        results = {m["tool_call_id"]: m["content"] for m in messages if m["role"] == "tool"}
        assert results == {c["tool_call_id"]: c["observation"] for c in own}
        asked = [c["id"] for m in messages for c in m.get("tool_calls") or ()]
        assert asked == list(results)
        assert t["injected_outcomes"] == [
            c["injected_outcome"] for c in own if c["injected_outcome"]
        ]
        assert t["num_errors"] == sum(c["is_error"] for c in own)


def test_a_finished_conversation_ends_with_the_agents_words(played: dict[str, list[Row]]):
    done = [t for t in played["trajectories"] if t["termination_reason"] == "user_done"]
    assert done
    for t in done:
        last = t["messages"][-1]
        assert last["role"] == "assistant"
        assert last["content"]
        assert not last.get("tool_calls")


def test_hashes_chain_from_the_first_state_to_the_last(played: dict[str, list[Row]]):
    for t in played["trajectories"]:
        own = [c for c in played["tool_calls"] if c["trajectory_id"] == t["trajectory_id"]]
        hashes = [(c["state_hash_before"], c["state_hash_after"]) for c in own if c["executed_by"]]
        state = t["state_hash_initial"]
        for before, after in hashes:
            assert before == state
            state = after
        assert state == t["state_hash_final"]


def test_usage_is_counted_by_role(played: dict[str, list[Row]]):
    for t in played["trajectories"]:
        assert t["token_counts"]["agent"]["prompt"] > t["token_counts"]["agent"]["completion"] > 0
        assert t["token_counts"]["user"]["prompt"] > 0


@pytest.mark.slow
def test_concurrency_changes_no_row(played: dict[str, list[Row]], tmp_path: Path):
    assert asyncio.run(rollouts(tmp_path, "offline", 12, 1)) == played


def test_ids_hang_on_what_decides_the_row_and_on_nothing_else():
    def ids(config: RolloutConfig = RolloutConfig(), **agent: Any) -> list[str]:
        roles = ROLES | {"agent": RoleConfig(**agent)}
        return [item.item_id for item in plan_rollouts([TASK], config=config, roles=roles)]

    assert ids() == ids(usd_per_million_prompt=3.0, retries=1, base_url="http://127.0.0.1:1/v1")
    assert ids(RolloutConfig(attempts=3))[:1] == ids()
    assert len(set(ids(RolloutConfig(attempts=3)))) == 3
    assert ids() != ids(temperature=0.5)
    assert ids() != ids(models=(ModelConfig(name="other"),))
    assert ids() != ids(RolloutConfig(episode=STORMY))


def completion_of(**fields: Any) -> Completion:
    plain = Completion("", [], None, "stop", "m", 1, 1, cached=False)
    return plain._replace(**fields)


def test_call_ids_are_ours_and_arguments_the_models():
    made = [
        {"id": "same", "type": "function", "function": {"name": "a", "arguments": '{"x":  1.0}'}},
        {"id": "same", "type": "function", "function": {"name": "a-b", "arguments": "{"}},
    ]
    message = assistant_message(completion_of(content="Hm", tool_calls=made), num_calls=3)
    assert [c["id"] for c in message["tool_calls"]] == ["call_3", "call_4"]
    assert [c["function"]["arguments"] for c in message["tool_calls"]] == ['{"x":  1.0}', "{"]
    assert message["content"] == "Hm"


def test_a_filtered_answer_is_a_refusal():
    message = assistant_message(completion_of(finish_reason="content_filter"), num_calls=0)
    assert message["refusal"]


def run_scripted(app: Any, folder: Path, roles: dict[str, RoleConfig] = ROLES) -> ItemResult:
    config = RolloutConfig(episode=QUIET)
    (item,) = plan_rollouts([TASK], config=config, roles=roles)

    async def run() -> ItemResult:
        async with model(app, folder, roles) as llm:
            return await run_rollout(
                item, llm, llm._journal, catalogue=catalogue(), config=config, roles=roles
            )

    return asyncio.run(run())


def test_an_endpoint_that_stays_down_becomes_a_failed_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("synth.episode.rollout.INFRA_WAIT_S", 0.0)
    asked = 0

    async def down(scope: Any, receive: Any, send: Any) -> None:
        nonlocal asked
        body = json.loads((await receive())["body"])
        asked += 1
        if "tools" not in body or len(body["messages"]) == 2:  # all but the agent's second turn
            await ScriptedApp(lambda _: calls(CANCEL))(scope, received(body), send)
        else:
            await send({"type": "http.response.start", "status": 500, "headers": []})
            await send({"type": "http.response.body", "body": b""})

    roles = {role: RoleConfig(retries=1, backoff_s=0.0) for role in ROLES}
    result = run_scripted(down, tmp_path, roles)
    (row,) = result.tables["trajectories"]
    assert result.status[:2] == ("failed", "infra_error")
    assert result.status.detail is not None
    assert "answered 500" in result.status.detail
    assert (row["termination_reason"], row["outcome"]) == ("infra_error", "error")
    assert (row["objective_reward"], row["num_tool_calls"]) == (0.0, 1)
    assert "500" in row["error"]
    assert asked == 1 + 3 * 2  # the paid answer once, three attempts of two tries


def received(body: dict[str, Any]) -> Any:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": json.dumps(body).encode()}

    return receive


def test_a_budget_that_is_spent_ends_the_episode_and_not_the_row(tmp_path: Path):
    """Also when it is the user's turn that no longer fits."""

    class Spent:
        def __init__(self, llm: Any, role: str) -> None:
            self._llm, self._role = llm, role
            self._journal = llm._journal
            self.retry_number_of = llm.retry_number_of

        async def chat(self, role: str, *args: Any, **options: Any) -> Any:
            if role == self._role:
                raise BudgetError("spent")
            return await self._llm.chat(role, *args, **options)

        async def structured(self, *args: Any, **options: Any) -> Any:
            raise BudgetError("spent")

    async def run(role: str) -> None:
        config = RolloutConfig(episode=QUIET)
        (item,) = plan_rollouts([TASK], config=config, roles=ROLES)
        async with model(ScriptedApp(lambda _: "Done."), tmp_path) as llm:
            spent: Any = Spent(llm, role)
            await run_rollout(
                item, spent, llm._journal, catalogue=catalogue(), config=config, roles=ROLES
            )

    for role in ("agent", "user"):
        with pytest.raises(BudgetError, match="spent"):
            asyncio.run(run(role))


def test_results_that_drift_from_the_journal_are_counted(tmp_path: Path):
    def app() -> ScriptedApp:
        left = [calls(CANCEL), "I have cancelled it."]

        def answer(body: dict[str, Any]) -> str | dict[str, Any]:
            if "response_format" in body:
                return json.dumps({"message": "Thanks.", "done": True})
            return left.pop(0)

        return ScriptedApp(answer)

    assert run_scripted(app(), tmp_path).noted == {}
    with ShardJournal(tmp_path / "journal.sqlite") as journal:
        journal._db.execute(
            "UPDATE observations SET observation = replace(observation, 'cancelled', 'undone')"
        )
    result = run_scripted(app(), tmp_path)
    assert result.noted == {"replay_drift": 1}
    assert "undone" in result.tables["tool_calls"][0]["observation"]


@pytest.fixture(scope="module")
def provider() -> Iterator[Server]:
    """The offline model on loopback, in a thread, counting what it answers."""
    settings = OfflineSettings()
    started: Any = threading.Event()
    loop = asyncio.new_event_loop()
    found: list[Server] = []
    stops: list[asyncio.Future[None]] = []

    def reply(_: int, body: dict[str, Any]) -> dict[str, Any]:
        request = parse_chat(body)
        return completion(request, answer_of(request, settings))

    async def run() -> None:
        stop = loop.create_future()
        async with serve(reply) as server:
            found.append(server)
            stops.append(stop)
            started.set()
            await stop

    thread = threading.Thread(target=loop.run_until_complete, args=(run(),), daemon=True)
    thread.start()
    assert started.wait(30)
    yield found[0]
    loop.call_soon_threadsafe(stops[0].set_result, None)
    thread.join(30)


@pytest.mark.slow
@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.scale), 5])
def test_killed_between_any_two_writes_it_goes_on_and_pays_nothing_twice(
    step: int, provider: Server, tmp_path: Path
):
    def requests_of(run: Any) -> int:
        before = len(provider.requests)
        run()
        return len(provider.requests) - before

    whole = tmp_path / "whole"
    needed = requests_of(lambda: work(whole, provider.url, 1, 1))
    assert needed >= 6
    expected = rows_in(whole)
    before, num_kills, again = len(provider.requests), 0, 0
    for folder in killing.killed_everywhere(work, tmp_path, provider.url, 1, 1, step=step):
        work(folder, provider.url, 1, 1)
        assert rows_in(folder) == expected
        paid = len(provider.requests) - before
        assert paid <= needed + 1  # the one whose answer was on its way into the journal
        again += paid - needed
        num_kills += 1
        before = len(provider.requests)
    assert num_kills * step > needed
    assert again <= needed


@pytest.mark.slow
def test_killed_while_a_model_plays_the_tools_nothing_is_paid_twice(
    provider: Server, tmp_path: Path
):
    in_flight = 2
    before = len(provider.requests)
    work_played(tmp_path / "whole", provider.url, 2, in_flight)
    needed, expected = len(provider.requests) - before, rows_in(tmp_path / "whole")
    assert expected["simulations"]
    for kill_at in (9, 23, 31, 44):
        folder = tmp_path / f"killed-{kill_at}"
        before = len(provider.requests)
        run = killing.run(work_played, folder, provider.url, 2, in_flight, kill_at=kill_at)
        assert run.killed
        work_played(folder, provider.url, 2, in_flight)
        assert rows_in(folder) == expected
        assert len(provider.requests) - before <= needed + in_flight


@pytest.mark.slow
def test_killed_with_several_in_flight_only_those_are_asked_again(provider: Server, tmp_path: Path):
    in_flight = 3
    before = len(provider.requests)
    work(tmp_path / "whole", provider.url, 4, in_flight)
    needed, expected = len(provider.requests) - before, rows_in(tmp_path / "whole")
    for kill_at in (17, 41, 67):
        folder = tmp_path / f"killed-{kill_at}"
        before = len(provider.requests)
        assert killing.run(work, folder, provider.url, 4, in_flight, kill_at=kill_at).killed
        work(folder, provider.url, 4, in_flight)
        assert rows_in(folder) == expected
        assert len(provider.requests) - before <= needed + in_flight
