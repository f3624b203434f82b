"""After a refusal: what the agent could not reach is not held against it, everything else is."""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth.episode.environment import EpisodeConfig
from synth.episode.tools.fault_injection import FaultInjectionConfig, OutcomeKind
from synth.rubrics.built_in import BUILT_IN, episode_of
from synth.rubrics.criteria import Rubric, StateCheck
from synth.rubrics.refused import excused, refused_tools
from synth.rubrics.reward import evidence_of, rubric_of
from synth.rubrics.standing import INJECTED, STANDING, standing_for
from synth.rubrics.state import check_state, is_part
from tests.synth.clinic import CANCEL, FIND, TASK, calls, environment, play, says

REFUSED = EpisodeConfig(fault_injection=FaultInjectionConfig(weights={"permission_denied": 1.0}))
"""Two calls of a tool in a row are refused; the third goes through."""

SORRY = says("I may not cancel appointments; please call the clinic.")
ALLERGY = ("add_allergy", {"patient_id": "PT-1003", "allergy": "eggs"})


def checked(
    *actions: dict[str, Any], config: EpisodeConfig = REFUSED, criteria: tuple[Any, ...] = ()
) -> tuple[dict[str, bool | None], frozenset[str]]:
    """Code's verdicts, with what is excused, and the tools that were refused."""
    env = environment(config)
    asyncio.run(play(env, *actions))
    rows = json.loads(json.dumps([r._asdict() for r in env.state.caller.records]))
    rubric = Rubric.model_validate({"criteria": criteria}) if criteria else rubric_of(TASK)
    episode = evidence_of(env.state.messages, rows)
    refused = refused_tools(rows)
    found = excused(rubric, BUILT_IN.check_all(rubric, episode), episode, refused)
    return {name: verdict.passed for name, verdict in found.items()}, refused


def criterion(kind: str, **check: Any) -> dict[str, Any]:
    return {
        "id": kind, "kind": kind, "words": "w", "weight": 1, "mandatory": True, "check": check
    }  # fmt: skip


def test_the_state_that_a_refusal_keeps_away_is_not_asked_for() -> None:
    found, refused = checked(calls(CANCEL), SORRY)
    assert refused == {"cancel_appointment"}
    assert found["goal"]


def test_another_change_is_not_excused() -> None:
    # two refusals in a row, then the call goes through: another than what was to be done
    found, _ = checked(calls(CANCEL), calls(ALLERGY, ALLERGY, ALLERGY), SORRY)
    assert found["goal"] is False


def test_without_a_refusal_the_state_is_what_it_is_asked_to_be() -> None:
    found, refused = checked(SORRY)
    assert not refused
    assert found["goal"] is False


def test_a_tool_that_went_through_later_was_not_kept_away() -> None:
    found, refused = checked(calls(CANCEL, CANCEL, CANCEL), SORRY)
    assert not refused
    assert found["goal"]
    wrong = ("cancel_appointment", {"appointment_id": "AP-1004", "reason": "work"})
    found, refused = checked(calls(CANCEL, CANCEL, wrong), SORRY)
    assert not refused
    assert found["goal"] is False


@pytest.mark.parametrize("kind", ["transient_error", "rate_limit"])
def test_an_error_that_passes_excuses_nothing(kind: OutcomeKind) -> None:
    config = EpisodeConfig(fault_injection=FaultInjectionConfig(weights={kind: 1.0}))
    found, refused = checked(calls(CANCEL), SORRY, config=config)
    assert not refused
    assert found["goal"] is False


def test_a_call_of_a_refused_tool_is_not_asked_for_and_one_of_another_is() -> None:
    for tool, passed in (("cancel_appointment", True), ("find_patients", False)):
        wanted = (criterion("call", tool=tool, must="occur"),)
        assert checked(calls(CANCEL), SORRY, criteria=wanted)[0] == {"call": passed}
    forbidden = (criterion("call", tool="cancel_appointment", must="not_occur"),)
    assert checked(calls(CANCEL), SORRY, criteria=forbidden)[0] == {"call": False}


def test_a_value_that_nobody_told_the_agent_is_not_asked_for() -> None:
    unread = (criterion("communicate", values=["PT-1003"]),)
    assert checked(calls(FIND), SORRY, criteria=unread)[0] == {"communicate": True}
    # the user said the name, so the agent had it
    said = (criterion("communicate", values=["Ingrid Solheim"]),)
    found, _ = checked(calls(FIND), SORRY, criteria=said)
    assert not found["communicate"]


def test_tests_are_excused_only_where_nothing_was_changed() -> None:
    rubric = Rubric.model_validate({"criteria": [criterion("test", fail_to_pass=["t"])]})
    change = {"op": "update", "entity": "file", "id": "a.py", "before": {}, "after": {"text": "x"}}
    for changes, passed in (([], True), ([change], False)):
        episode = episode_of([], [], changes=changes, tests={"t": "still fails"})
        verdicts = BUILT_IN.check_all(rubric, episode)
        assert verdicts["test"].passed is False
        found = excused(rubric, verdicts, episode, frozenset({"edit"}))
        assert found["test"].passed is passed


FIELDS = st.dictionaries(st.sampled_from("ab"), st.integers(0, 2), min_size=1)
CHANGES = st.lists(
    st.tuples(st.sampled_from(["create", "update"]), FIELDS, st.sampled_from(["r1", "r2", "r3"])),
    max_size=4,
    unique_by=lambda change: change[2],
)


@given(CHANGES, st.data())
def test_some_of_the_expected_changes_are_a_part_and_one_more_is_not(
    expected: list[tuple[str, dict[str, int], str]], data: st.DataObject
) -> None:
    check = StateCheck.model_validate(
        {
            "changes": [
                {"op": op, "entity": "e", "match": match, "id": row if op == "update" else None}
                for op, match, row in expected
            ]
        }
    )
    seen = [
        {"op": op, "entity": "e", "id": row, "before": None, "after": match}
        for op, match, row in expected
    ]
    some = data.draw(st.permutations(seen)) if seen else []
    kept = some[: data.draw(st.integers(0, len(some)))]
    assert is_part(check, kept)
    assert check_state(check, some).passed
    other = {"op": "delete", "entity": "e", "id": "r9", "before": {"a": 1}, "after": None}
    assert not is_part(check, [*kept, other])


def test_a_row_that_refers_to_a_new_one_is_a_part_only_with_its_id() -> None:
    check = StateCheck.model_validate(
        {
            "changes": [
                {"op": "create", "entity": "order", "match": {"sum": 3}},
                {"op": "create", "entity": "line", "match": {"order": {"$new": 0}}},
                {"op": "delete", "entity": "cart", "id": "c", "match": {}},
            ]
        }
    )
    order = {"op": "create", "entity": "order", "id": "o7", "before": None, "after": {"sum": 3}}
    line = {"op": "create", "entity": "line", "id": "l", "before": None, "after": {"order": "o7"}}
    assert is_part(check, [line, order])
    assert not is_part(check, [line | {"after": {"order": "o8"}}, order])


def call(outcome: str | None, name: str) -> dict[str, Any]:
    return {"injected_outcome": outcome, "name": name}


def test_an_outcome_brings_its_criterion_with_the_tools_that_it_befell() -> None:
    assert standing_for([call(None, "look"), call("rate_limit", "look")]) == STANDING
    befell = [call("empty", "find"), call("stale", "look"), call("empty", "list")]
    own = standing_for(befell)[len(STANDING) :]
    assert [c.id for c in own] == [INJECTED["empty"].id, INJECTED["stale"].id]
    assert "`find`, `list`" in own[0].words
    assert "`look`" in own[1].words
    assert all(c.mandatory for c in own)
