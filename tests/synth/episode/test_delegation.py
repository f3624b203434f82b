"""Sub-agents: one state and one record of calls, conversations told apart, limits of their own."""

import asyncio
import copy
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from records.errors import BudgetError
from records.tables.schemas import Row
from records.tables.tables import TABLES
from synth.curation.candidates import FollowingTurns, following
from synth.curation.turns import faulty_turns, train_turns
from synth.engine.stages import ItemResult
from synth.episode.config import DelegationConfig, EpisodeConfig
from synth.episode.delegation import NAME, TOOL
from synth.episode.replay import replay_rows
from synth.episode.rollout import RolloutConfig, plan_rollouts, run_rollout
from synth.judging.grading import plan_grading
from synth.llm.settings.config import RoleConfig
from synth.rubrics.turns import what_is_wrong
from tests import killing
from tests.synth.clinic import CANCEL, QUIET, TASK, calls, catalogue
from tests.synth.llm.server import answer, in_thread
from tests.synth.rollout_work import rows_in, work_delegated
from tests.synth.scripted import ROLES, ScriptedApp, model

TASK_TEXT = "Cancel appointment AP-1004, the reason is travel."

Body = dict[str, Any]
Said = str | dict[str, Any]


def delegating(**limits: Any) -> EpisodeConfig:
    return QUIET.model_copy(update={"delegation": DelegationConfig(share=1.0, **limits)})


def handed_over(*tasks: str) -> dict[str, Any]:
    made = [{"name": NAME, "arguments": json.dumps({"task": task})} for task in tasks]
    functions = enumerate(made)
    return {
        "tool_calls": [{"id": f"x{i}", "type": "function", "function": f} for i, f in functions]
    }


def is_sub_agent(body: Body) -> bool:
    return body["messages"][0]["content"].startswith("Another assistant, which serves")


def num_said(body: Body) -> int:
    return sum(message["role"] == "assistant" for message in body["messages"])


def script(agent: list[Said], sub_agent: list[Said]) -> Callable[[Body], Said]:
    """Each says what its conversation has come to; the user is content at once."""

    def said(body: Body) -> Said:
        if "response_format" in body:
            return json.dumps({"message": "Thanks.", "done": True})
        lines = sub_agent if is_sub_agent(body) else agent
        return copy.deepcopy(lines[num_said(body)])

    return said


def play(
    said: Callable[[Body], Said],
    folder: Path,
    episode: EpisodeConfig = delegating(),
    roles: dict[str, RoleConfig] = ROLES,
) -> tuple[ItemResult, list[Body]]:
    config, app = RolloutConfig(episode=episode), ScriptedApp(said)
    (item,) = plan_rollouts([TASK], config=config, roles=roles)

    async def run() -> ItemResult:
        async with model(app, folder, roles) as llm:
            return await run_rollout(
                item, llm, llm._journal, catalogue=catalogue(), config=config, roles=roles
            )

    return asyncio.run(run()), app.requests


WELL = script(
    [handed_over(TASK_TEXT), "I have cancelled it."], [calls(CANCEL), "AP-1004 is cancelled."]
)


def test_a_sub_agent_works_on_the_same_state_and_answers_the_call(tmp_path: Path) -> None:
    result, requests = play(WELL, tmp_path)
    episode, conversation = result.tables["trajectories"]
    assert (episode["outcome"], episode["objective_reward"]) == ("passed", 1.0)
    assert episode["episode_id"] == conversation["episode_id"] == episode["trajectory_id"]
    assert (episode["parent_call_id"], conversation["parent_call_id"]) == (None, "call_0")
    assert (episode["session"], conversation["session"]) == (0, 0)
    assert conversation["trajectory_id"] != episode["trajectory_id"]
    made = result.tables["tool_calls"]
    assert [(c["name"], c["parent_call_id"]) for c in made] == [
        (CANCEL[0], "call_0"), (NAME, None),
    ]  # fmt: skip
    assert [c["call_index"] for c in made] == [0, 1]
    assert {c["trajectory_id"] for c in made} == {episode["trajectory_id"]}
    assert made[1]["observation"] == "AP-1004 is cancelled."
    assert made[1]["executed_by"] == "sub_agent"
    assert made[0]["state_hash_after"] == made[1]["state_hash_before"]
    assert episode["messages"][3]["content"] == "AP-1004 is cancelled."
    assert conversation["messages"][1]["content"] == TASK_TEXT
    assert conversation["messages"][2]["tool_calls"][0]["id"] == "call_0_0"
    assert (episode["num_tool_calls"], conversation["num_tool_calls"]) == (1, 1)
    offered = [[t["function"]["name"] for t in r["tools"]] for r in requests if "tools" in r]
    assert [NAME in names for names in offered] == [True, False, False, True]
    assert TOOL in episode["tools"]
    assert TOOL not in conversation["tools"]
    tokens = [row["token_counts"]["agent"] for row in (episode, conversation)]
    assert tokens == [{"prompt": 20, "completion": 4}] * 2


def test_rows_have_exactly_the_columns_of_their_tables_and_can_be_trained_on(
    tmp_path: Path,
) -> None:
    tables = play(WELL, tmp_path)[0].tables
    for table, rows in tables.items():
        columns = set(TABLES[table].schema.names) - {"run_id", "schema_version"}
        assert all(set(row) == columns for row in rows)
    assert [what_is_wrong(row["messages"]) for row in tables["trajectories"]] == [None, None]


def test_without_a_share_nobody_has_the_tool(tmp_path: Path) -> None:
    result, requests = play(script(["I cannot."], []), tmp_path, QUIET)
    assert len(result.tables["trajectories"]) == 1
    names = [t["function"]["name"] for r in requests for t in r.get("tools", ())]
    assert names
    assert NAME not in names


@pytest.mark.parametrize(
    ("limits", "sub_agent", "reason"),
    [
        ({"max_turns": 2}, [calls(CANCEL)] * 9, "max_turns"),
        ({"token_budget": 100}, [calls(CANCEL), "Done. " * 200, "Done."], "agent_done"),
        ({"token_budget": 100}, [calls(CANCEL) | {"content": "x y " * 200}] * 9, "token_budget"),
        ({}, [{"content": "No.", "finish_reason": "content_filter"}], "refused"),
        ({}, [""], "format_error"),
        ({}, [calls(("no_such_tool", {}))] * 9, "format_error"),
        ({}, [handed_over("More.")] * 9, "format_error"),
    ],
)
def test_a_sub_agent_has_ends_of_its_own_and_the_agent_goes_on(
    tmp_path: Path, limits: dict[str, Any], sub_agent: list[Said], reason: str
) -> None:
    agent = [
        handed_over(TASK_TEXT),
        calls(CANCEL),
        "AP-1004 is cancelled.",
    ]  # by itself, if need be
    result, _ = play(script(agent, sub_agent), tmp_path, delegating(**limits))
    episode, conversation = result.tables["trajectories"]
    assert conversation["termination_reason"] == reason
    assert episode["termination_reason"] == "user_done"
    made = [c for c in result.tables["tool_calls"] if c["parent_call_id"] is None]
    handed = made[0]
    assert handed["is_error"] is (reason != "agent_done")
    assert handed["error_code"] == (None if reason == "agent_done" else "unfinished")
    assert (reason in handed["observation"]) is (reason != "agent_done")


def test_what_is_no_piece_of_work_is_refused_unasked(tmp_path: Path) -> None:
    wrong = handed_over("x")
    wrong["tool_calls"][0]["function"]["arguments"] = '{"work": 1}'
    result, requests = play(script([wrong, calls(CANCEL), "Done."], []), tmp_path)
    call, _ = result.tables["tool_calls"]
    assert (call["error_code"], call["executed_by"]) == ("invalid_arguments", None)
    assert not any(map(is_sub_agent, requests))


def test_only_so_many_pieces_of_work_are_handed_over(tmp_path: Path) -> None:
    said = script(
        [handed_over("One.", "Two.", "Three."), calls(CANCEL), "Done."], ["Nothing to do."]
    )
    result, _ = play(said, tmp_path, delegating(max_delegations=2))
    codes = [call["error_code"] for call in result.tables["tool_calls"]]
    assert codes == [None, None, "too_many_delegations", None]
    rows = result.tables["trajectories"]
    assert [row["parent_call_id"] for row in rows] == [None, "call_0", "call_1"]


def test_calls_beside_a_piece_of_work_are_made_in_their_order(tmp_path: Path) -> None:
    mixed = handed_over(TASK_TEXT)
    mixed["tool_calls"] += calls(CANCEL)["tool_calls"]
    said = script([mixed, "Done."], [calls(CANCEL), "Cancelled."])
    made = play(said, tmp_path)[0].tables["tool_calls"]
    assert [c["tool_call_id"] for c in made] == ["call_0_0", "call_0", "call_1"]
    assert [c["is_error"] for c in made] == [False, False, True]  # it is cancelled already


def test_an_endpoint_that_fails_in_a_sub_agent_leaves_no_conversation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("synth.episode.rollout.INFRA_WAIT_S", 0.0)

    def said(body: Body) -> Said:
        if is_sub_agent(body) and num_said(body) == 1:
            raise ConnectionError("gone")
        return WELL(body)

    roles = {role: RoleConfig(retries=0, backoff_s=0.0) for role in ROLES}
    result, _ = play(said, tmp_path, roles=roles)
    (row,) = result.tables["trajectories"]
    assert result.status[:2] == ("failed", "infra_error")
    assert row["termination_reason"] == "infra_error"


def test_a_budget_that_is_spent_in_a_sub_agent_is_gone_on_with_and_nothing_is_paid_twice(
    tmp_path: Path,
) -> None:
    class Spent:
        """Refuses the answer of this number."""

        def __init__(self, llm: Any, last: int) -> None:
            self._llm, self._left = llm, last
            self._journal, self.retry_number_of = llm._journal, llm.retry_number_of

        def _pay(self) -> None:
            if self._left == 0:
                raise BudgetError("spent")
            self._left -= 1

        async def chat(self, *args: Any, **options: Any) -> Any:
            self._pay()
            return await self._llm.chat(*args, **options)

        async def structured(self, *args: Any, **options: Any) -> Any:
            self._pay()
            return await self._llm.structured(*args, **options)

    config = RolloutConfig(episode=delegating())
    (item,) = plan_rollouts([TASK], config=config, roles=ROLES)
    app = ScriptedApp(WELL)

    async def run(last: int) -> ItemResult:
        async with model(app, tmp_path) as llm:
            spent: Any = Spent(llm, last)
            return await run_rollout(
                item, spent, llm._journal, catalogue=catalogue(), config=config, roles=ROLES
            )

    whole, requests = play(WELL, tmp_path / "whole")
    for last in (1, 2, 3):  # before, within and after the sub-agent's turns
        with pytest.raises(BudgetError, match="spent"):
            asyncio.run(run(last))
        assert len(app.requests) == last
    result = asyncio.run(run(99))
    assert result.tables == whole.tables
    assert result.noted == {}
    assert len(app.requests) == len(requests)


def test_an_episode_with_sub_agents_is_replayed(tmp_path: Path) -> None:
    tables = play(WELL, tmp_path)[0].tables
    episode, conversation = tables["trajectories"]

    def differences(told: Row, made: Sequence[Row]) -> list[str]:
        replayed = replay_rows(episode, made, TASK, catalogue(), delegating(), conversations=[told])
        return [difference.where for difference in asyncio.run(replayed).differences]

    assert differences(conversation, tables["tool_calls"]) == []
    planted = copy.deepcopy(conversation)
    planted["messages"][3]["content"] = "{}"
    assert differences(planted, tables["tool_calls"]) == ["sub-agent of call_0: message 3"]
    calls_planted = copy.deepcopy(tables["tool_calls"])
    calls_planted[0]["state_diff"] = []
    assert "call 0: state_diff" in differences(conversation, calls_planted)
    silent = copy.deepcopy(conversation)
    silent["messages"][-1]["content"] = "It is not cancelled."
    assert "call 1: observation" in differences(silent, tables["tool_calls"])


def test_a_sub_agents_conversation_is_no_item_of_grading(tmp_path: Path) -> None:
    rows = play(WELL, tmp_path)[0].tables["trajectories"]
    items = plan_grading(rows, grading_id="g")
    assert [item.data["trajectory_id"] for item in items] == [rows[0]["trajectory_id"]]


@pytest.mark.parametrize("drop_reason", [None, "failed_state"])
@pytest.mark.parametrize("reason", ["agent_done", "max_turns"])
def test_a_conversation_is_kept_with_its_episode_and_only_when_it_is_whole(
    tmp_path: Path, drop_reason: str | None, reason: str
) -> None:
    tables = play(WELL, tmp_path)[0].tables
    episode, conversation = tables["trajectories"]
    told = FollowingTurns.of(conversation | {"termination_reason": reason}, tables["tool_calls"])
    decided = {"accepted": drop_reason is None, "drop_reason": drop_reason, "score": 0.9}
    decided |= {"trajectory_id": episode["trajectory_id"], "train_turns": [True]}
    (row,) = following([decided], [told])
    kept = drop_reason is None and reason == "agent_done"
    assert row["accepted"] is kept
    assert row["drop_reason"] == (None if kept else drop_reason or "sub_agent_unfinished")
    assert (row["trajectory_id"], row["score"]) == (conversation["trajectory_id"], 0.9)
    assert row["train_turns"] == train_turns(
        conversation["messages"], faulty_turns(conversation["messages"], tables["tool_calls"])
    )
    assert row["train_turns"] == [False, False, True, False, True]
    assert following([], [told]) == []


@pytest.mark.slow
@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.scale), 5])
def test_killed_between_any_two_writes_nothing_is_paid_twice(step: int, tmp_path: Path) -> None:
    def persistent(body: Body) -> Said:
        """As `WELL`, but a sub-agent that tries again until a call goes well."""
        last = body["messages"][-1]
        if not is_sub_agent(body):
            return WELL(body)
        is_open = last["role"] == "user" or '"error"' in last["content"]
        return calls(CANCEL) if is_open else "AP-1004 is cancelled."

    def reply(_: int, body: Body) -> Body:
        said = persistent(body)
        return answer(**said) if isinstance(said, dict) else answer(said)

    with in_thread(reply) as provider:
        work_delegated(tmp_path / "whole", provider.url)
        needed, expected = len(provider.requests), rows_in(tmp_path / "whole")
        assert len(expected["trajectories"]) == 2
        before, num_kills = needed, 0
        killed = killing.killed_everywhere(work_delegated, tmp_path, provider.url, step=step)
        for folder in killed:
            work_delegated(folder, provider.url)
            assert rows_in(folder) == expected
            paid = len(provider.requests) - before
            assert paid <= needed + 1  # the one whose answer was on its way into the journal
            before, num_kills = len(provider.requests), num_kills + 1
    assert num_kills * step > needed
