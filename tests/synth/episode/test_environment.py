"""The episode environment: order, frames, ends, snapshots, and mistakes as observations."""

import asyncio
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from records.errors import BudgetError, TransientError
from records.store.journal import ShardJournal
from synth.episode.environment import EpisodeConfig, EpisodeEnvironment, message_tokens
from synth.episode.tools.fault_injection import FaultInjectionConfig
from synth.episode.users.user import UserError
from tests.examples import examples
from tests.synth.clinic import (
    CANCEL,
    FIND,
    QUIET,
    RUBRIC,
    TASK,
    ScriptedUser,
    calls,
    catalogue,
    environment,
    play,
    says,
)

STORMY = EpisodeConfig(
    fault_injection=FaultInjectionConfig(
        weights={"success": 2, "transient_error": 1, "rate_limit": 1}
    )
)


def run(env: EpisodeEnvironment, *actions: dict[str, Any], **options: Any) -> list[Any]:
    return asyncio.run(play(env, *actions, **options))


def observed(step: Any) -> list[Any]:
    return [json.loads(message["content"]) for message in step.observation]


def test_reset_gives_system_prompt_opening_and_tools():
    async def reset() -> Any:
        return await environment().reset(TASK, 1)

    messages, info = asyncio.run(reset())
    assert [m["role"] for m in messages] == ["system", "user"]
    assert messages[1]["content"] == TASK["user_brief"]["opening"]
    system = messages[0]["content"]
    assert "2026-03-02T09:00:00" in system
    assert "Do not cancel an appointment on the day it takes place" in system
    names = [tool["function"]["name"] for tool in info["tools"]]
    assert names[0] == "find_patients"
    assert len(names) == len(set(names)) == 11


def test_a_task_done_ends_with_the_user_and_the_full_reward():
    first, second, last = run(
        environment(lines=["Because of travel."]),
        says("Why do you cancel?"),
        calls(CANCEL),
        says("I have cancelled it."),
    )
    assert [m["role"] for m in first.observation] == ["user"]
    assert observed(second)[0]["status"] == "cancelled"
    assert (last.observation, last.reward, last.terminated) == ([], 1.0, True)
    assert last.info["termination_reason"] == "user_done"
    assert not last.truncated
    assert [step.reward for step in (first, second)] == [0.0, 0.0]


def test_the_frame_condition_takes_collateral_changes():
    allergy = ("add_allergy", {"patient_id": "PT-1003", "allergy": "eggs"})
    _, last = run(environment(), calls(CANCEL, allergy), says("I have cancelled it."))
    assert last.reward == 0.0
    assert not last.info["verdicts"]["goal"].passed


def test_parallel_calls_run_in_their_order():
    again = ("list_free_slots", {"doctor_id": "DR-1003"})
    env = environment()
    (step,) = run(env, calls(again, CANCEL, again, CANCEL))
    before, cancelled, after, refused = observed(step)
    assert after["free"] == before["free"] + 1
    assert cancelled["status"] == "cancelled"
    assert refused["error"]["code"] == "not_booked"
    assert [m["tool_call_id"] for m in step.observation] == [f"call_{i}" for i in range(4)]
    records = env.state.caller.records
    assert [r.call_index for r in records] == [0, 1, 2, 3]
    for earlier, later in itertools.pairwise(records):
        assert earlier.state_hash_after == later.state_hash_before
    assert [bool(r.state_diff) for r in records] == [False, True, False, False]


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("cancel_appointment", "{not json", "invalid_arguments"),
        ("cancel_appointment", '{"appointment_id": NaN}', "invalid_arguments"),
        ("cancel_appointment", "[1]", "invalid_arguments"),
        ("cancel_appointment", '"AP-1004"', "invalid_arguments"),
        ("cancel_appointment", "[" * 100_000, "invalid_arguments"),
        ("cancel_appointment", '{"appointment_id": "\\ud800"}', "invalid_arguments"),
        ("cancel_appointment", "{}", "invalid_arguments"),
        ("cancel_appointment", {"appointment_id": 4}, "invalid_arguments"),
        ("cancel_appointment", {"appointment_id": "AP-1004", "x": 1}, "invalid_arguments"),
        ("cancel_everything", {}, "unknown_tool"),
        ("", "", "unknown_tool"),
    ],
)
def test_a_call_that_no_tool_can_take_is_an_error_for_the_agent(
    name: str, arguments: Any, code: str
):
    env = environment()
    (step,) = run(env, calls((name, arguments)))
    assert observed(step)[0]["error"]["code"] == code
    assert not step.terminated
    (record,) = env.state.caller.records
    assert (record.is_error, record.error_code, record.executed_by) == (True, code, None)
    assert json.dumps(record.arguments)


def test_an_error_names_what_is_allowed():
    (step,) = run(
        environment(),
        calls(("cancel_appointment", {"appointment_id": "AP-1004", "reason": "rain"})),
    )
    message = observed(step)[0]["error"]["message"]
    assert "reason" in message
    assert "illness" in message


def test_format_errors_in_a_row_end_the_episode():
    bad = calls(("cancel_appointment", "{"))
    *_, last = run(environment(), bad, bad, bad)
    assert last.info["termination_reason"] == "format_error"
    assert last.terminated
    steps = run(environment(), bad, bad, calls(FIND), bad, bad)
    assert not any(step.terminated for step in steps)


def test_an_empty_answer_is_a_format_error():
    (step,) = run(environment(), says("  "))
    assert step.info["termination_reason"] == "format_error"


def test_calls_beyond_the_limit_are_not_run():
    config = QUIET.model_copy(update={"max_parallel_calls": 2})
    env = environment(config)
    (step,) = run(env, calls(FIND, FIND, CANCEL))
    assert observed(step)[2]["error"]["code"] == "too_many_calls"
    assert env.state.caller.records[2].state_diff == []


def test_long_results_are_cut_and_say_so():
    config = QUIET.model_copy(update={"observation_chars": 200})
    (step,) = run(environment(config), calls(("find_patients", {})))
    text = step.observation[0]["content"]
    assert len(text) < 300
    assert "characters shown" in text


def test_turns_run_out():
    env = environment(lines=["and?"] * 9)
    steps = run(env, *[says(f"Hm {i}") for i in range(3)], task=TASK | {"max_turns": 3})
    assert [step.truncated for step in steps] == [False, False, True]
    assert steps[-1].info["termination_reason"] == "max_turns"
    assert not steps[-1].terminated


def test_tokens_run_out():
    budget = message_tokens({"role": "user", "content": TASK["user_brief"]["opening"]}) + 10
    (step,) = run(
        environment(lines=["and?"]), says("word " * 10), task=TASK | {"token_budget": budget}
    )
    assert (step.truncated, step.info["termination_reason"]) == (True, "token_budget")


def test_a_user_who_is_done_is_done_even_on_the_last_turn():
    (step,) = run(environment(), says("Fine."), task=TASK | {"max_turns": 1, "token_budget": 1})
    assert step.info["termination_reason"] == "user_done"


def test_without_a_user_the_first_answer_ends_it():
    env = EpisodeEnvironment(catalogue(), QUIET)
    _, last = run(env, calls(CANCEL), says("I have cancelled it."))
    assert (last.info["termination_reason"], last.reward) == ("agent_done", 1.0)


def test_a_refusal_by_the_endpoint_ends_it():
    (step,) = run(environment(), says("") | {"refusal": "no"})
    assert step.info["termination_reason"] == "refused"


@pytest.mark.parametrize(
    ("error", "reason", "truncated"),
    [
        (BudgetError("spent"), "budget_stop", True),
        (TransientError("endpoint down"), "infra_error", True),
        (UserError("still wrong"), "user_error", False),
    ],
)
def test_failures_around_the_agent_say_nothing_about_it(
    error: Exception, reason: str, truncated: bool
):
    class Failing:
        async def reply(self, *_: Any, **__: Any) -> Any:
            raise error

    env = EpisodeEnvironment(catalogue(), QUIET, user=lambda *_: Failing())
    _, last = run(env, calls(CANCEL), says("I have cancelled it."))
    assert last.info["termination_reason"] == reason
    assert last.info["error"] == str(error)
    assert (last.reward, last.truncated, last.info["verdicts"]) == (0.0, truncated, {})


def test_breaches_of_policy_stand_on_the_call():
    same_day = ("cancel_appointment", {"appointment_id": "AP-1001", "reason": "other"})
    env = environment()
    *_, last = run(env, calls(same_day, CANCEL), says("Done."))
    assert [r.policy_violations for r in env.state.caller.records] == [["no_same_day_cancel"], []]
    assert not last.info["verdicts"]["policy"].passed


def test_a_step_after_the_end_is_refused():
    async def over() -> None:
        env = environment()
        await env.reset(TASK, 1)
        await env.step(says("Bye."))
        with pytest.raises(ValueError, match="user_done"):
            await env.step(says("Bye."))

    asyncio.run(over())
    with pytest.raises(ValueError, match="reset"):
        _ = environment().state


MOVES = [
    calls(FIND),
    calls(CANCEL),
    calls(("list_free_slots", {"doctor_id": "DR-1003"}), CANCEL),
    calls(("record_payment", {"patient_id": "PT-1002", "amount": 5})),
    calls(("cancel_appointment", "{")),
    says("And now?"),
]


@settings(max_examples=examples(30), deadline=None)
@given(
    before=st.lists(st.sampled_from(range(len(MOVES))), max_size=6),
    after=st.lists(st.sampled_from(range(len(MOVES))), max_size=6),
    seed=st.integers(0, 1000),
)
def test_a_restored_snapshot_goes_on_like_the_original(
    before: list[int], after: list[int], seed: int
):
    """Also into another environment, and injected faults included."""
    config = STORMY.model_copy(update={"max_format_errors": 99})

    def env() -> EpisodeEnvironment:
        return environment(config, lines=["Go on."] * 20)

    async def further(on: EpisodeEnvironment) -> Any:
        steps = [await on.step(MOVES[i]) for i in after]
        return steps, on.state.messages, on.state.caller.records, on.state.caller.state_hash()

    async def compare() -> None:
        first, second = env(), env()
        await first.reset(TASK, seed)
        for i in before:
            await first.step(MOVES[i])
        snapshot = first.snapshot()
        expected = await further(first)
        await second.restore(snapshot)
        assert await further(second) == expected
        await first.restore(snapshot)
        assert await further(first) == expected

    asyncio.run(compare())


def test_injected_errors_never_touch_state():
    env = environment(
        EpisodeConfig(
            fault_injection=FaultInjectionConfig(weights={"transient_error": 1}, max_in_a_row=5)
        )
    )
    steps = run(env, *[calls(CANCEL)] * 6)
    records = env.state.caller.records
    assert [r.injected_outcome for r in records] == ["transient_error"] * 5 + [None]
    assert all(
        r.state_diff == [] and r.state_hash_before == r.state_hash_after for r in records[:5]
    )
    assert len({r.state_hash_before for r in records}) == 1
    assert records[5].state_diff
    assert all("error" in observed(step)[0] for step in steps[:5])


def test_a_stale_read_shows_the_state_at_the_start():
    booked = ("list_appointments", {"patient_id": "PT-1003"})
    env = environment(
        EpisodeConfig(fault_injection=FaultInjectionConfig(weights={"stale": 1}, max_in_a_row=9))
    )
    before, cancelled, after = run(env, calls(booked), calls(CANCEL), calls(booked))
    assert observed(cancelled)[0]["status"] == "cancelled"
    assert observed(after) == observed(before)
    assert [r.injected_outcome for r in env.state.caller.records] == [None, None, "stale"]


def journalled(path: Path, *actions: dict[str, Any]) -> EpisodeEnvironment:
    with ShardJournal(path) as journal:
        env = environment(QUIET, lines=["Go on."], journal=journal, episode_id="e")
        asyncio.run(play(env, *actions))
    return env


def test_a_journalled_result_counts_and_a_difference_is_a_drift(tmp_path: Path):
    path = tmp_path / "j.sqlite"
    first = journalled(path, calls(FIND), says("Hm."))
    assert journalled(path, calls(FIND), says("Hm.")).state.messages == first.state.messages
    with ShardJournal(path) as journal:
        rows = journal._db.execute("SELECT step, observation FROM observations").fetchall()
        planted = rows[0][1].replace("Solheim", "Sundheim")
        journal._db.execute("UPDATE observations SET observation = ?", (planted,))
    again = journalled(path, calls(FIND), says("Hm."))
    assert again.state.drifts == [rows[0][0]]
    assert "Sundheim" in again.state.messages[3]["content"]
    assert "Sundheim" in again.state.caller.records[0].observation


def test_a_branch_does_not_see_the_results_of_another(tmp_path: Path):
    path = tmp_path / "j.sqlite"
    journalled(path, calls(FIND))
    env = journalled(path, calls(("find_patients", {"name": "Reyes"})))
    assert env.state.drifts == []
    assert "Reyes" in env.state.messages[3]["content"]


def test_code_criteria_alone_make_the_reward():
    """An `nl` criterion, mandatory or not, is the judge's and stands aside."""
    strict = [c | {"mandatory": True} if c["id"] == "tone" else c for c in RUBRIC["criteria"]]
    task = TASK | {"rubric": {**RUBRIC, "criteria": strict}}
    env = EpisodeEnvironment(catalogue(), QUIET, user=lambda *_: ScriptedUser())
    _, last = run(env, calls(CANCEL), says("I have cancelled it."), task=task)
    assert last.reward == 1.0
    assert "tone" not in last.info["verdicts"]
