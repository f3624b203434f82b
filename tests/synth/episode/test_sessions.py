"""Episodes of several conversations: one state and outcome, notes, a row and a user for each."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from records.tables.schemas import Row
from synth.curation.candidates import FollowingTurns, following
from synth.engine.stages import Item, ItemResult
from synth.episode.config import DelegationConfig, EpisodeConfig
from synth.episode.delegation import NAME
from synth.episode.environment import EpisodeEnvironment
from synth.episode.replay import replay_rows
from synth.episode.rollout import RolloutConfig, plan_rollouts, run_rollout
from synth.episode.sessions import part_of, session_id, whole_episode
from synth.judging.grading import Recorded, plan_grading
from synth.judging.transcript import ANOTHER, transcript_of
from synth.rubrics.economy import economy_of
from synth.rubrics.turns import what_is_wrong
from tests import killing
from tests.synth.clinic import (
    AGENT,
    CANCEL,
    PERSONA,
    QUIET,
    TASK,
    TOOLS,
    ScriptedUser,
    calls,
    catalogue,
    play,
    says,
)
from tests.synth.llm.server import answer, in_thread
from tests.synth.returning import BRIEF, COMES_BACK, SEVERAL
from tests.synth.rollout_work import rows_in, work_returning
from tests.synth.scripted import ROLES, ScriptedApp, model

KEEP = ("write_note", {"text": "Cancellation to come; the reason is travel."})


def environment(
    config: EpisodeConfig = QUIET, lines: tuple[str, ...] = (), **options: Any
) -> tuple[EpisodeEnvironment, list[Row]]:
    """Beside it the parts that its users were given."""
    parts: list[Row] = []

    def user(task: Row, _: Row) -> ScriptedUser:
        parts.append(task["user_brief"])
        return ScriptedUser(*(lines if not task["user_brief"]["session"] else ()))

    return EpisodeEnvironment(catalogue(), config, user=user, **options), parts


WELL = (
    says("Mei Tanaka is free on Monday. Anything else?"),
    calls(KEEP),
    says("I have noted it."),
    calls(("read_notes", {}), first=1),
    calls(CANCEL, first=2),
    says("Your appointment is cancelled because of travel."),
)


def test_state_and_notes_are_carried_over_and_the_outcome_is_one() -> None:
    env, parts = environment(lines=("Keep the reason, it is travel.",))
    steps = asyncio.run(play(env, *WELL, task=SEVERAL))
    assert [step.info["session"] for step in steps] == [0, 0, 1, 1, 1, 1]
    assert [part["session"] for part in parts] == [0, 1]
    assert env.state.conversation[:2] == steps[2].observation
    beginning = steps[2].observation
    assert [message["role"] for message in beginning] == ["system", "user"]
    assert beginning[1]["content"] == COMES_BACK
    [read] = steps[3].info["calls"]
    assert json.loads(read.observation) == {"notes": [KEEP[1]["text"]]}
    assert (read.executed_by, read.tool_id, read.session) == ("notes", None, 1)
    assert [record.session for record in env.state.caller.records] == [0, 1, 1]
    assert (steps[-1].terminated, steps[-1].reward) == (True, 1.0)
    assert not any(step.terminated for step in steps[:-1])


def test_the_user_knows_in_each_conversation_what_belongs_to_it() -> None:
    first, second = part_of(BRIEF, 0), part_of(BRIEF, 1)
    assert first["wishes"] == BRIEF["wishes"][:2]
    assert second["wishes"] == BRIEF["wishes"][2:]
    assert second["earlier"] == BRIEF["wishes"][:1]
    assert [(f["label"], f["goal"]) for f in first["facts"]] == [("doctor", 0), ("reason", 1)]
    assert [(f["label"], f["goal"]) for f in second["facts"]] == [("name", 0)]
    assert "travel" not in json.dumps(second)
    assert part_of(TASK["user_brief"], 0) == TASK["user_brief"]


def test_an_agent_of_a_task_in_one_conversation_has_no_notes() -> None:
    for task, expected in ((SEVERAL, True), (TASK, False)):
        plain = EpisodeEnvironment(catalogue(), QUIET)
        messages, info = asyncio.run(plain.reset(task, 1))
        names = {tool["function"]["name"] for tool in info["tools"]}
        assert ({"write_note", "read_notes"} <= names) is expected
        assert ("read the notes" in " ".join(messages[0]["content"].split())) is expected


def test_a_snapshot_in_a_later_conversation_goes_on_from_there() -> None:
    async def run() -> tuple[list[Any], list[Any]]:
        env, _ = environment(lines=("Keep the reason, it is travel.",))
        await env.reset(SEVERAL, 1)
        for action in WELL[:4]:
            await env.step(action)
        taken = env.snapshot()
        other, parts = environment()
        await other.restore(taken)
        assert parts[-1]["session"] == 1
        ends = []
        for again in (env, other):
            steps = [await again.step(action) for action in WELL[4:]]
            ends.append((again.state.messages, steps[-1].reward, again.state.hash_final))
            await again.close()
        return ends[0], ends[1]

    one, other = asyncio.run(run())
    assert one == other
    assert one[1] == 1.0


def rollout(
    folder: Path, agent: list[Any], *, delegates: bool = False
) -> tuple[ItemResult, list[dict[str, Any]]]:
    """The agent says its lines; the user brings one more wish in the first conversation."""
    said = iter(agent)

    def answered(body: dict[str, Any]) -> Any:
        if "response_format" not in body:
            return next(said)
        turns = sum(m["role"] == "assistant" for m in body["messages"])
        is_first = COMES_BACK not in json.dumps(body["messages"])
        more = is_first and turns == 1
        words = "Please keep for later that I cannot come because of travel." if more else "Bye."
        return json.dumps({"message": words, "done": not more})

    episode = QUIET.model_copy(update={"delegation": DelegationConfig(share=float(delegates))})
    config, app = RolloutConfig(episode=episode), ScriptedApp(answered)
    (item,) = plan_rollouts([SEVERAL], config=config, roles=ROLES)

    async def run() -> ItemResult:
        async with model(app, folder, ROLES) as llm:
            return await run_rollout(
                item, llm, llm._journal, catalogue=catalogue(), config=config, roles=ROLES
            )

    return asyncio.run(run()), app.requests


def scripted() -> list[Any]:
    return [
        {key: value for key, value in action.items() if key != "role"}
        if action.get("tool_calls")
        else action["content"]
        for action in WELL
    ]


def test_each_conversation_is_a_row_of_one_episode(tmp_path: Path) -> None:
    result, requests = rollout(tmp_path, scripted())
    first, second = result.tables["trajectories"]
    assert first["episode_id"] == second["episode_id"] == first["trajectory_id"]
    assert second["trajectory_id"] == session_id(first["trajectory_id"], 1)
    assert [row["session"] for row in (first, second)] == [0, 1]
    assert {row["outcome"] for row in (first, second)} == {"passed"}
    assert [row["num_tool_calls"] for row in (first, second)] == [1, 2]
    assert [call["session"] for call in result.tables["tool_calls"]] == [0, 1, 1]
    for row in (first, second):
        assert row["messages"][0]["role"] == "system"
        assert row["num_messages"] == len(row["messages"])
        assert what_is_wrong(row["messages"]) is None
    agents = [body for body in requests if "response_format" not in body]
    returned = [body for body in agents if body["messages"][1]["content"] == COMES_BACK]
    assert len(returned) == 3
    assert all("Which slots" not in json.dumps(body["messages"]) for body in returned)
    # one conversation each: the number of requests is that of turns, none is asked twice
    assert len({json.dumps(body) for body in requests}) == len(requests)
    users = [body for body in requests if "response_format" in body]
    assert "reason: travel" in users[0]["messages"][0]["content"]
    assert "travel" not in users[-1]["messages"][0]["content"].split("What you want")[1]


def test_the_whole_is_replayed_and_a_changed_note_is_found(tmp_path: Path) -> None:
    tables = rollout(tmp_path, scripted())[0].tables
    first, second = tables["trajectories"]
    whole = whole_episode(first, {second["trajectory_id"]: second}, SEVERAL)
    assert len(whole["messages"]) == first["num_messages"] + second["num_messages"]

    def differences(calls_made: Sequence[Row]) -> list[str]:
        report = asyncio.run(replay_rows(whole, calls_made, SEVERAL, catalogue(), QUIET))
        return [difference.where for difference in report.differences]

    assert differences(tables["tool_calls"]) == []
    forged = [dict(call) for call in tables["tool_calls"]]
    forged[1]["observation"] = '{"notes": ["The reason is another one."]}'
    assert "call 1: observation" in differences(forged)


def test_a_sub_agents_row_tells_in_which_conversation_it_was_asked(tmp_path: Path) -> None:
    task = json.dumps({"task": "Cancel AP-1004, the reason is travel."})
    lines = scripted()
    function = {"name": NAME, "arguments": task}
    lines[4:5] = [
        {"tool_calls": [{"id": "x", "type": "function", "function": function}]},
        {key: value for key, value in calls(CANCEL).items() if key != "role"},
        "It is cancelled.",
    ]
    rows = rollout(tmp_path, lines, delegates=True)[0].tables["trajectories"]
    assert [(row["session"], row["parent_call_id"]) for row in rows] == [
        (0, None),
        (1, None),
        (1, "call_2"),
    ]
    assert rows[0]["outcome"] == "passed"


def recorded(tables: Mapping[str, Sequence[Row]]) -> Recorded:
    rows = {row["trajectory_id"]: row for row in tables["trajectories"]}
    first = tables["trajectories"][0]["trajectory_id"]
    return Recorded(
        trajectories=rows,
        tool_calls={first: tables["tool_calls"]},
        tasks={"task": SEVERAL},
        agents={"agent": AGENT},
        tools={tool["tool_id"]: tool for tool in TOOLS},
        personas={"persona": PERSONA},
    )


def test_the_episode_is_judged_once_and_as_a_whole(tmp_path: Path) -> None:
    tables = rollout(tmp_path, scripted())[0].tables
    first = tables["trajectories"][0]
    items = plan_grading(tables["trajectories"], grading_id="g")
    assert [item.data["trajectory_id"] for item in items] == [first["trajectory_id"]]
    given: Item = recorded(tables).of(items[0])
    transcript = transcript_of(given.data["trajectory"]["messages"])
    assert [e["content"] for e in transcript if e["role"] == "system"] == [ANOTHER]
    assert transcript[0]["content"] == BRIEF["opening"]
    assert transcript[-1]["content"] == WELL[-1]["content"]
    assert given.data["user"]["comes back"] == ["You come back."]
    assert {"write_note", "read_notes"} <= {tool["name"] for tool in given.data["tools"]}
    verdict = economy_of(
        given.data["trajectory"]["messages"], given.data["calls"], given.data["tools"], 1
    )
    assert verdict.passed, "notes are no calls in vain"


@pytest.mark.parametrize("drop_reason", [None, "failed_state"])
def test_a_later_conversation_is_kept_with_its_episode(
    tmp_path: Path, drop_reason: str | None
) -> None:
    tables = rollout(tmp_path, scripted())[0].tables
    first, second = tables["trajectories"]
    told = FollowingTurns.of(second, tables["tool_calls"])
    decided = {"accepted": drop_reason is None, "drop_reason": drop_reason, "train_turns": []}
    (row,) = following([decided | {"trajectory_id": first["trajectory_id"]}], [told])
    assert (row["accepted"], row["drop_reason"]) == (drop_reason is None, drop_reason)
    assert row["train_turns"] == [m["role"] == "assistant" for m in second["messages"]]


@pytest.mark.slow
@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.scale), 5])
def test_killed_between_any_two_writes_nothing_is_paid_twice(step: int, tmp_path: Path) -> None:
    def reply(_: int, body: dict[str, Any]) -> dict[str, Any]:
        """An agent that tries again until a call goes well."""
        messages = body["messages"]
        turns = sum(m["role"] == "assistant" for m in messages)
        is_back = COMES_BACK in json.dumps(messages)
        if "response_format" in body:
            more = turns == 1 and not is_back
            words = "Please keep for later that I cannot come because of travel."
            return answer(json.dumps({"message": words if more else "Bye.", "done": not more}))
        last, lines = messages[-1], WELL[3:] if is_back else WELL[:3]
        failed = last["role"] == "tool" and '"error"' in last["content"]
        done = sum(m["role"] == "tool" and '"error"' not in m["content"] for m in messages)
        said = sum(m["role"] == "assistant" and not m.get("tool_calls") for m in messages)
        action = messages[-2] if failed else lines[done + said]
        return answer(**{key: value for key, value in action.items() if key != "role"})

    with in_thread(reply) as provider:
        work_returning(tmp_path / "whole", provider.url)
        needed, expected = len(provider.requests), rows_in(tmp_path / "whole")
        assert [row["session"] for row in expected["trajectories"]] == [0, 1]
        assert expected["trajectories"][0]["outcome"] == "passed"
        before, num_kills = needed, 0
        killed = killing.killed_everywhere(work_returning, tmp_path, provider.url, step=step)
        for folder in killed:
            work_returning(folder, provider.url)
            assert rows_in(folder) == expected
            paid = len(provider.requests) - before
            assert paid <= needed + 1  # the one whose answer was on its way into the journal
            before, num_kills = len(provider.requests), num_kills + 1
    assert num_kills * step > needed
