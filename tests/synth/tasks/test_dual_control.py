"""Dual control: a user that owns tools over the same state, from the task to the stored rows."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from records.errors import ConfigError
from records.store.journal import ShardJournal
from records.tables.schemas import Row
from synth.episode.environment import EpisodeEnvironment
from synth.episode.replay import replay_rows
from synth.episode.tools.executors import Catalogue
from synth.episode.tools.simulator import Question, SimulateConfig
from synth.episode.users.acts import was_spoken_of
from synth.episode.users.faults import UserFault
from synth.episode.users.user import LlmUser, Scene, UserCall, UserTurn, conversation_for_user
from synth.judging.perturbation.episodes import PassedEpisode
from synth.judging.perturbation.registry import BY_PHRASE, perturb
from synth.render.transcript import OWN_TOOLS, turns_of
from synth.rubrics.built_in import CALL, EpisodeCall, episode_of
from synth.rubrics.criteria import CallCheck
from synth.tasks.composing import DomainTasks
from synth.tasks.goals.goals import Draft, Proof
from synth.tasks.lengths import Complexity
from synth.tasks.proof.proving import UnprovedError, prove
from tests.synth.clinic import PERSONA, QUIET, calls, says
from tests.synth.scripted import ScriptedApp, model
from tool_specs.domains.catalogue import domain_id, domain_of_rows, domain_row, is_users, tool_rows
from tool_specs.domains.domain import Domain, load_domains

SHARES = Complexity(1.0, 0.0, 0.0)


@cache
def domain() -> Domain:
    (found,) = load_domains(["home_hub"])
    return found


def tools() -> list[Row]:
    return tool_rows(domain())


@cache
def made() -> tuple[Draft, Proof]:
    own = domain().file.user_tools
    tasks = DomainTasks(domain(), domain().programs.keys() - set(own), own=own)
    _, draft, proof = tasks.make("lamp", shares=SHARES, disclosure="at_once", dual_control=1.0)
    return draft, proof


def task() -> Row:
    draft, proof = made()
    known = [fact for goal in draft.goals for fact in goal.known]
    return {
        "task_id": "task",
        "agent_id": "agent",
        "persona_id": "persona",
        "domain_id": domain_id(domain()),
        "server": None,
        "variant": "normal",
        "solvable": True,
        "user_brief": {
            "opening": "Please help me.",
            "wishes": [goal.description for goal in draft.goals],
            "facts": [{"label": f.label, "value": f.value, "when": f.when, "goal": 0}
                      for f in known],
        },
        "rubric": proof.rubric.model_dump(mode="json"),
        "reference_plan": [],
        "initial_state": draft.initial_state,
        "token_budget": 20_000,
        "max_turns": 20,
        "seed": 1,
        "split": "train",
        "user_tool_ids": [tool["tool_id"] for tool in tools() if is_users(tool)],
    }  # fmt: skip


def catalogue() -> Catalogue:
    agents = [tool["tool_id"] for tool in tools() if not is_users(tool)]
    agent = {"agent_id": "agent", "tool_ids": agents, "system_prompt": "You help.", "policy": []}
    return Catalogue(
        agents={"agent": agent},
        personas={"persona": PERSONA},
        tools={tool["tool_id"]: tool for tool in tools()},
        domains={domain_id(domain()): domain()},
        servers={},
    )


class Doer:
    """Does what the plan asks of the user once it is spoken to, then is content."""

    def __init__(self) -> None:
        self._steps = made()[0].user_steps

    async def reply(self, scene: Scene) -> UserTurn:
        if scene.calls:
            return UserTurn("", True)
        for number, step in enumerate(self._steps):
            await scene.act([UserCall(f"own_{number}", step.tool, json.dumps(step.arguments))])
        return UserTurn("Yes, that is done now.", False)


def plan_of(actor: str) -> list[tuple[str, dict[str, Any]]]:
    return [(s.tool, s.arguments) for s in made()[0].plan if s.actor == actor]


def play(env: EpisodeEnvironment, *actions: dict[str, Any]) -> Any:
    async def go() -> Any:
        await env.reset(task(), 1)
        step = None
        for action in actions:
            step = await env.step(action)
        await env.close()
        return step

    return asyncio.run(go())


def closing() -> str:
    values = [str(v) for goal in made()[0].goals for a in goal.asks for v in a.values]
    told = [str(v) for _, arguments in plan_of("user") for v in arguments.values()]
    return f"All is done: {', '.join([*values, *told])}."


def good_run(env: EpisodeEnvironment) -> Any:
    *lookups, goal = plan_of("agent")
    ask = says(f"Could you please do your part for {closing()}")
    return play(
        env, calls(*lookups, goal), ask, calls(goal, first=len(lookups) + 2), says(closing())
    )


def test_a_task_needs_the_user_and_its_proof_has_both_actors_steps():
    draft, proof = made()
    (step,) = draft.user_steps
    assert step.tool in domain().file.user_tools
    assert [s.actor for s in draft.plan][-2:] == ["user", "agent"]
    ids = [criterion.id for criterion in proof.rubric.criteria]
    assert {"state", "by_user_1", "asked_for_1"} <= set(ids)
    agents = {n: t for n, t in DomainTasks(domain(), domain().programs).tools.items()
              if n not in domain().file.user_tools}  # fmt: skip
    with pytest.raises(UnprovedError, match="tool_not_at_hand"):
        prove(domain(), draft, agents)
    alone = draft.goals[0].model_copy(
        update={"steps": tuple(s for s in draft.goals[0].steps if s.actor == "agent")}
    )
    with pytest.raises(UnprovedError, match="plan_fails"):
        prove(domain(), draft.model_copy(update={"goals": (alone,)}), agents)


def test_the_agent_is_told_of_the_users_tools_and_has_none_of_them():
    env = EpisodeEnvironment(catalogue(), QUIET, user=lambda *_: Doer())
    messages, info = asyncio.run(env.reset(task(), 1))
    names = {tool["function"]["name"] for tool in info["tools"]}
    assert names.isdisjoint(domain().file.user_tools)
    assert "## What the user can do" in messages[0]["content"]


def test_the_users_calls_change_the_state_and_stay_out_of_the_agents_messages():
    env = EpisodeEnvironment(catalogue(), QUIET, user=lambda *_: Doer())
    last = good_run(env)
    assert last.info["termination_reason"] == "user_done"
    assert {i: v.passed for i, v in last.info["verdicts"].items() if i != "manner"} == {
        i: True for i in last.info["verdicts"]
    }
    assert last.reward == 1.0
    records = env.state.caller.records
    (own,) = [record for record in records if record.actor == "user"]
    assert own.state_diff
    assert own.state_hash_before != own.state_hash_after
    assert own.name not in json.dumps(env.state.messages)
    assert [record.call_index for record in records] == list(range(len(records)))


def test_an_agent_that_does_not_ask_reaches_nothing():
    env = EpisodeEnvironment(catalogue(), QUIET)
    last = play(env, calls(*plan_of("agent")), says(closing()))
    failed = {i for i, v in last.info["verdicts"].items() if not v.passed}
    assert {"state", "by_user_1"} <= failed


def test_an_agent_cannot_call_the_users_tool():
    env = EpisodeEnvironment(catalogue(), QUIET)
    play(env, calls(*plan_of("user")))
    assert [r.error_code for r in env.state.caller.records] == ["unknown_tool"]


def rows_of(env: EpisodeEnvironment) -> tuple[Row, list[Row]]:
    state = env.state
    trajectory = {
        "trajectory_id": "x",
        "seed": 1,
        "messages": state.messages,
        "tools": [],
        "termination_reason": state.reason,
        "state_hash_final": state.hash_final,
        "objective_reward": 1.0,
    }
    return trajectory, [record._asdict() for record in state.caller.records]


def test_replay_makes_the_users_calls_again():
    env = EpisodeEnvironment(catalogue(), QUIET, user=lambda *_: Doer())
    good_run(env)
    trajectory, rows = rows_of(env)
    report = asyncio.run(replay_rows(trajectory, rows, task(), catalogue(), QUIET))
    assert report.differences == []
    without = [row | {"call_index": i} for i, row in enumerate(rows) if row["actor"] == "agent"]
    report = asyncio.run(replay_rows(trajectory, without, task(), catalogue(), QUIET))
    assert report.differences


def test_a_snapshot_holds_what_the_user_did_and_the_journal_counts(tmp_path: Path):
    def env(journal: ShardJournal) -> EpisodeEnvironment:
        return EpisodeEnvironment(
            catalogue(), QUIET, user=lambda *_: Doer(), journal=journal, episode_id="e"
        )

    async def go() -> list[str]:
        *lookups, goal = plan_of("agent")
        with ShardJournal(tmp_path / "journal.sqlite") as journal:
            first = env(journal)
            await first.reset(task(), 1)
            await first.step(calls(*lookups, goal))
            await first.step(says("Please do your part."))
            held = first.snapshot()
            second = env(journal)
            await second.restore(held)
            hashes = []
            for one in (first, second):
                await one.step(calls(goal, first=len(lookups) + 2))
                await one.close()
                hashes.append(str(one.state.hash_final))
            assert first.state.drifts == second.state.drifts == []
            return hashes

    ours, theirs = asyncio.run(go())
    assert ours == theirs


def test_shown_turns_mark_what_the_user_did():
    env = EpisodeEnvironment(catalogue(), QUIET, user=lambda *_: Doer())
    good_run(env)
    trajectory, rows = rows_of(env)
    turns = turns_of(trajectory["messages"], rows, None)
    place = [turn.role for turn in turns].index(OWN_TOOLS)
    assert turns[place + 1].text == "Yes, that is done now."
    assert "by the user" in turns[place].calls[0].marks[0]


def reply(app: ScriptedApp, folder: Path, heard: str, faults: list[UserFault]) -> UserTurn:
    own = [tool for tool in tools() if is_users(tool)]
    env = EpisodeEnvironment(catalogue(), QUIET)

    async def ask() -> UserTurn:
        await env.reset(task(), 1)
        env.state.turn = 1  # the agent has spoken once
        async with model(app, folder) as llm:
            user = LlmUser(llm, item="t", persona=PERSONA, brief=task()["user_brief"], tools=own)
            messages = [{"role": "user", "content": "Please help me."}, says(heard)]
            scene = env._scene(env.state)  # the environment's own way to run the user's calls
            scene = Scene(messages, scene.goal_open, 1, (), scene.act, faults.append)
            return await user.reply(scene)

    return asyncio.run(ask())


def acting(*made_calls: tuple[str, dict[str, Any]]) -> Any:
    """A user model that first makes these calls and then says that it did."""

    def answer(body: dict[str, Any]) -> str | dict[str, Any]:
        if "response_format" in body:
            return json.dumps({"message": "Yes, that is done now.", "done": False})
        if body["messages"][-1]["role"] == "tool":
            return {"content": ""}
        return calls(*made_calls) | {"finish_reason": "tool_calls"}

    return answer


def test_the_user_model_calls_its_own_tools_and_then_speaks(tmp_path: Path):
    (step,) = made()[0].user_steps
    app = ScriptedApp(acting((step.tool, step.arguments)))
    faults: list[UserFault] = []
    heard = f"Could you {step.tool.replace('_', ' ')} {next(iter(step.arguments.values()))}?"
    assert reply(app, tmp_path, heard, faults).message == "Yes, that is done now."
    assert faults == []
    offered, after, words = app.requests
    assert {t["function"]["name"] for t in offered["tools"]} == set(domain().file.user_tools)
    assert [m["role"] for m in after["messages"][-2:]] == ["assistant", "tool"]
    assert "tools" not in words
    assert words["messages"][1:] == after["messages"][1:]


@pytest.mark.parametrize(
    ("heard", "given", "kind"),
    [
        ("Thank you for waiting.", None, "unasked_act"),
        ("Could you restart the device and replace its batteries?", {"name": "HX-4711"},
         "invented_fact"),
    ],
)  # fmt: skip
def test_an_act_from_nowhere_is_not_made(
    heard: str, given: dict[str, Any] | None, kind: str, tmp_path: Path
):
    (step,) = made()[0].user_steps
    app = ScriptedApp(acting((step.tool, given or step.arguments)))
    faults: list[UserFault] = []
    reply(app, tmp_path, heard, faults)
    assert [fault.kind for fault in faults] == [kind]


def spoken(name: str, *heard: str) -> bool:
    """Whether these words of the agent speak of a call of that tool on the printer plug."""
    tool = next(tool for tool in tools() if tool["name"] == name)
    return was_spoken_of(tool, '{"name": "Printer plug"}', ["Hello.", *heard])


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("device_restart", "Could you please restart the device and tell me when it is done?"),
        ("device_restart", "Please restart the Printer plug."),
        ("device_restart", "The device must be restarted by hand."),
        ("device_restart", "Could you press the button on the Printer plug for me?"),
        ("batteries_replace", "Its battery is at 3 percent, so please replace it."),
        ("batteries_replace", "Could you put fresh batteries into the device?"),
        ("batteries_replace", "You need to change the batteries of the Printer plug."),
    ],
)
def test_what_was_asked_for_was_spoken_of(name: str, words: str):
    assert spoken(name, words)
    assert spoken(name, "Thank you.", words, "Is it done?")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("device_restart", "I have found the device."),
        ("device_restart", "The device is called Printer plug and it is offline."),
        ("device_restart", "Which device do you mean?"),
        ("device_restart", "I will restart the search."),
        ("batteries_replace", "The Printer plug is a device without a schedule."),
        ("batteries_replace", "The battery is at 3 percent."),
    ],
)
def test_a_word_in_passing_asks_for_no_act(name: str, words: str):
    assert not spoken(name, words)
    assert not spoken(name)


def test_the_act_and_its_object_may_stand_in_two_messages_in_a_row():
    first, second = "The device is offline.", "Please restart it."
    assert spoken("device_restart", first, second)
    assert not spoken("device_restart", first, "One moment.", "Shall I look further?", second)


class Silent:
    """A model that plays tools and has no answer."""

    async def answer(self, question: Question) -> None:
        return None


class Quitter(Doer):
    """Does its part and leaves at once."""

    async def reply(self, scene: Scene) -> UserTurn:
        return (await super().reply(scene))._replace(message="", done=True)


@pytest.mark.parametrize("user", [Doer, Quitter])
def test_a_user_s_tool_that_fails_around_it_is_no_end_that_the_user_chose(user: type[Doer]):
    played = replace(catalogue(), simulate=SimulateConfig(tools=domain().file.user_tools))
    env = EpisodeEnvironment(played, QUIET, user=lambda *_: user(), answers=Silent())
    last = play(env, says(f"Could you please do your part for {closing()}"))
    assert last.info["termination_reason"] == "infra_error"
    assert "simulation_failed" in last.info["error"]
    assert env.state.hopeless
    assert env.state.messages[-1]["role"] == "assistant"


def test_no_call_of_the_user_is_planted_into_the_agents_messages():
    env = EpisodeEnvironment(catalogue(), QUIET, user=lambda *_: Doer())
    good_run(env)
    trajectory, rows = rows_of(env)
    offered = [tool for tool in tools() if not is_users(tool)]
    source = PassedEpisode(trajectory, rows, task(), offered)
    negatives = [p for name in BY_PHRASE if (p := perturb(name, source))]
    assert len(negatives) >= 4
    names = {tool["name"] for tool in offered}
    for one in negatives:
        asked = [call for m in one.messages for call in m.get("tool_calls") or ()]
        assert {call["function"]["name"] for call in asked} <= names, one.perturbation
        assert [c for c in one.calls if c["actor"] == "user"] == [
            r for r in rows if r["actor"] == "user"
        ], one.perturbation


def test_own_calls_stand_before_the_words_that_followed_them():
    env = EpisodeEnvironment(catalogue(), QUIET, user=lambda *_: Doer())
    good_run(env)
    own: Sequence[Any] = [r for r in env.state.caller.records if r.actor == "user"]
    talk = conversation_for_user(env.state.messages, own)
    roles = [message["role"] for message in talk]
    at = roles.index("tool")
    assert roles[at - 2 : at + 2] == ["user", "assistant", "tool", "assistant"]


def test_whose_calls_a_criterion_counts():
    def call(actor: str) -> EpisodeCall:
        return EpisodeCall(tool="restart", arguments={}, actor=actor)  # type: ignore[arg-type]

    check = CallCheck(tool="restart", must="occur", actor="user")
    assert CALL.verdict(check, episode_of([], [call("user")])).passed
    assert not CALL.verdict(check, episode_of([], [call("agent")])).passed
    none = CallCheck(tool="*", must="not_occur")
    assert CALL.verdict(none, episode_of([], [call("user")])).passed


def test_rows_hold_whose_a_tool_is_and_ids_of_other_domains_do_not_move():
    row, rows = domain_row(domain()), tools()
    assert {t["name"] for t in rows if is_users(t)} == set(domain().file.user_tools)
    again = domain_of_rows(row, rows)
    assert domain_id(again) == row["domain_id"]
    data = domain().file.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    with pytest.raises(ConfigError, match=r"user_tools names \['nothing'\]"):
        Domain.of(data | {"user_tools": ["nothing"]}, origin="x")
    everything = [tool["name"] for tool in data["tools"]]
    with pytest.raises(ConfigError, match="every tool"):
        Domain.of(data | {"user_tools": everything}, origin="x")
    rule = {"id": "by_hand", "text": "Nobody restarts a device.", "tool": "device_restart"}
    with pytest.raises(ConfigError, match=r"policy \['by_hand'\].*the agent alone"):
        Domain.of(data | {"policy": [*data["policy"], rule]}, origin="x")
