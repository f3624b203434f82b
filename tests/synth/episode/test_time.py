"""Episodes in which time passes: what jobs change is recorded beside calls, and never blamed."""

import asyncio
import json
from typing import Any

import pytest

from records.tables.schemas import Row
from synth.episode.environment import EpisodeEnvironment
from synth.episode.replay import replay_rows
from synth.episode.tools.executors import Catalogue
from synth.episode.tools.simulator import Question, SimulateConfig, SimulatedAnswer, checked_answer
from synth.judging.transcript import changes_of
from synth.render.transcript import turns_of
from synth.rubrics.episode import own_changes
from tests.synth.clinic import AGENT, PERSONA, QUIET, TASK, ScriptedUser, calls, says
from tests.tool_specs.conftest import CANTEEN
from tool_specs.domains.catalogue import domain_id, tool_rows
from tool_specs.domains.domain import Domain, load_domain
from tool_specs.domains.interpreter import DomainEnvironment
from tool_specs.domains.loading import read_yaml

DOMAIN = load_domain(CANTEEN)
TOOLS = tool_rows(DOMAIN)
CHANGES = [
    {"op": "update", "entity": "oven", "id": "OV-1003", "match": {"status": "off", "target": 0}}
]
RUBRIC = {
    "pass_threshold": 0.7,
    "criteria": [
        {
            "id": "goal",
            "kind": "state",
            "words": "The deck oven has baked, and nothing else is changed.",
            "weight": 3.0,
            "mandatory": True,
            "check": {"changes": CHANGES},
        }
    ],
}
BAKE: Row = TASK | {"domain_id": domain_id(DOMAIN), "rubric": RUBRIC}
BAKES = ("bake_in_oven", {"oven_id": "OV-1003", "minutes": 20})
WAITS = ("wait_in_kitchen", {"minutes": 15})


def catalogue(simulate: SimulateConfig = SimulateConfig()) -> Catalogue:
    return Catalogue(
        agents={"agent": AGENT | {"tool_ids": [tool["tool_id"] for tool in TOOLS]}},
        personas={"persona": PERSONA},
        tools={tool["tool_id"]: tool for tool in TOOLS},
        domains={domain_id(DOMAIN): DOMAIN},
        servers={},
        simulate=simulate,
    )


class Truthful:
    """A simulator that answers as the interpreter would, with the call's own changes as patch."""

    async def answer(self, question: Question) -> SimulatedAnswer | None:
        twin = question.environment.snapshot()
        result = twin.call(question.tool["name"], question.arguments)
        patch = [
            {name: change[name] for name in ("op", "entity", "id")} | {"set": change["after"]}
            for change in result.diff
        ]
        told = {"observation": result.observation, "is_error": result.is_error, "patch": patch}
        return checked_answer(question, told)


def episode(*, simulate: SimulateConfig = SimulateConfig()) -> tuple[EpisodeEnvironment, float]:
    """A wait and the baking, played to the end; and the reward."""

    async def play() -> tuple[EpisodeEnvironment, float]:
        env = EpisodeEnvironment(
            catalogue(simulate), QUIET, user=lambda *_: ScriptedUser(), answers=Truthful()
        )
        await env.reset(BAKE, 1)
        await env.step(calls(WAITS))
        await env.step(calls(BAKES, first=1))
        last = await env.step(says("The deck oven has baked."))
        await env.close()
        return env, last.reward

    return asyncio.run(play())


def test_what_jobs_change_is_recorded_and_not_blamed() -> None:
    env, reward = episode()
    assert reward == 1.0
    waited, baked = (record.state_diff for record in env.state.caller.records)
    assert own_changes(waited) == []
    assert [(c["job"], c["id"], c["at"]) for c in waited][:2] == [
        ("trolley_charges", "TR-1001", "2026-03-02T09:05:00"),
        ("hold_lapses", "BK-1001", "2026-03-02T09:10:00"),
    ]
    assert [change["id"] for change in own_changes(baked)] == ["OV-1003"]
    assert [change["id"] for change in baked] == ["OV-1003", "TR-1001", "TR-1001", "TR-1001"]


def test_a_transcript_tells_who_changed_what() -> None:
    rows = [record._asdict() for record in episode()[0].state.caller.records]
    shown = changes_of(rows)
    assert {entry["by"] for entry in shown} == {"agent", "environment"}
    assert [entry.get("job") for entry in shown if entry["by"] == "agent"] == [None]
    lapse = next(entry for entry in shown if entry.get("job") == "hold_lapses")
    assert (lapse["at"], lapse["changed"][0]["after"]["status"]) == (
        "2026-03-02T09:10:00",
        "lapsed",
    )


def test_a_shown_call_names_the_jobs_that_ran_meanwhile() -> None:
    state = episode()[0].state
    rows = [record._asdict() for record in state.caller.records]
    [waits, bakes] = [call for turn in turns_of(state.messages, rows, None) for call in turn.calls]
    assert "meanwhile: hold_lapses on booking BK-1001 at 2026-03-02T09:10:00" in waits.marks
    assert not any("OV-1003" in mark for mark in bakes.marks)


def replayed(env: EpisodeEnvironment, reward: float, simulate: SimulateConfig) -> list[Any]:
    rows = [record._asdict() for record in env.state.caller.records]
    trajectory = {
        "trajectory_id": "t",
        "messages": env.state.messages,
        "tools": [],
        "termination_reason": "user_done",
        "seed": 1,
        "state_hash_final": env.state.hash_final,
        "objective_reward": reward,
    }
    return asyncio.run(replay_rows(trajectory, rows, BAKE, catalogue(simulate), QUIET)).differences


def test_a_replay_comes_to_the_same_clock_and_state() -> None:
    env, reward = episode()
    assert replayed(env, reward, SimulateConfig()) == []


def test_simulated_tools_take_the_same_time() -> None:
    """And their replay does, with the same changes by jobs."""
    played = SimulateConfig(tools="all")
    env, reward = episode(simulate=played)
    true, _ = episode()
    assert env.state.hash_final == true.state.hash_final
    diffs = [[record.state_diff for record in e.state.caller.records] for e in (env, true)]
    assert diffs[0] == diffs[1]
    assert {record.executed_by for record in env.state.caller.records} == {"llm"}
    assert replayed(env, reward, played) == []


TALKING = Domain.of(read_yaml(CANTEEN) | {"user_turn": "6 minutes"}, origin="canteen.yaml")


def talked(domain: Domain, simulate: SimulateConfig = SimulateConfig()) -> EpisodeEnvironment:
    """Two questions to the user, then the baking."""
    task = BAKE | {"domain_id": domain_id(domain)}
    rows = {tool["tool_id"]: tool for tool in tool_rows(domain)}
    agents = {"agent": AGENT | {"tool_ids": list(rows)}}
    domains = {domain_id(domain): domain}

    async def play() -> EpisodeEnvironment:
        env = EpisodeEnvironment(
            Catalogue(agents, {"persona": PERSONA}, rows, domains, {}, simulate=simulate),
            QUIET,
            user=lambda *_: ScriptedUser("The deck oven.", "Yes."),
            answers=Truthful(),
        )
        await env.reset(task, 1)
        await env.step(says("Which oven?"))
        snapshot = env.snapshot()
        await env.step(says("I was never here."))
        await env.restore(snapshot)
        await env.step(says("Really?"))
        await env.step(calls(BAKES))
        await env.close()
        return env

    return asyncio.run(play())


@pytest.mark.parametrize("tools", ["without_semantics", "all", ("find_ovens",)])
def test_the_users_time_passes_once_a_turn(tools: Any) -> None:
    """However many executors share the state, and a turn that is taken back takes its time with
    it."""
    [record] = talked(TALKING, SimulateConfig(tools=tools)).state.caller.records
    assert json.loads(record.observation)["started_at"] == "2026-03-02T09:12:00"
    made_by = [change.get("job") for change in record.state_diff][:5]
    assert made_by == [
        "trolley_charges",
        "hold_lapses",
        "trolley_charges",
        "oven_gets_hot",
        None,
    ]
    assert [change["id"] for change in own_changes(record.state_diff)] == ["OV-1003"]


def test_without_a_setting_the_user_answers_at_once() -> None:
    [record] = talked(DOMAIN).state.caller.records
    assert json.loads(record.observation)["started_at"] == "2026-03-02T09:00:00"


def test_a_restored_episode_has_the_clock_of_its_snapshot() -> None:
    async def branch() -> tuple[str | None, str | None]:
        env = EpisodeEnvironment(catalogue(), QUIET, user=lambda *_: ScriptedUser())
        await env.reset(BAKE, 1)
        await env.step(calls(WAITS))
        snapshot = env.snapshot()
        ends = []
        for _ in range(2):
            await env.step(calls(WAITS, first=1))
            ends.append(env.state.caller.state_hash())
            await env.restore(snapshot)
        await env.close()
        return ends[0], ends[1]

    first, second = asyncio.run(branch())
    whole = DomainEnvironment.of(DOMAIN)
    whole.call("wait_in_kitchen", {"minutes": 30})
    assert first == second == whole.state_hash
