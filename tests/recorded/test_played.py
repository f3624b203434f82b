"""Conversations that a language model played in every role: what code says of them stays true."""

import json
from pathlib import Path
from typing import Any

import pytest

from synth.rubrics.built_in import BUILT_IN
from synth.rubrics.refused import excused, refused_tools
from synth.rubrics.reward import evidence_of, rubric_of
from synth.rubrics.statements.statements import statements_of
from synth.tasks.words.checks import borrowed

PLAYED: list[dict[str, Any]] = [
    json.loads(line)
    for line in (Path(__file__).parent / "played.jsonl").read_text(encoding="utf-8").splitlines()
]
ACCEPTED = [one for one in PLAYED if one["accepted"]]


def by_code(one: dict[str, Any]) -> dict[str, bool | None]:
    rubric = rubric_of(one)
    evidence = evidence_of(one["messages"], one["calls"])
    verdicts = BUILT_IN.check_all(rubric, evidence)
    found = excused(rubric, verdicts, evidence, refused_tools(one["calls"]))
    return {name: verdict.passed for name, verdict in found.items()}


def test_both_outcomes_are_there() -> None:
    assert (len(PLAYED), len(ACCEPTED)) == (54, 45)
    assert {one["failed_criterion"] for one in PLAYED} == {
        None,
        "policy",
        "state",
        "truth",
        "language",
        "user_part",
    }


@pytest.mark.parametrize("one", ACCEPTED, ids=lambda one: one["trajectory_id"])
def test_code_rejects_nothing_of_what_was_accepted(one):
    assert False not in by_code(one).values()
    outcomes = [s.outcome for s in statements_of(one["messages"], one["calls"])]
    assert outcomes
    assert "contradicted" not in outcomes


def test_code_sees_a_state_that_is_not_what_was_wished() -> None:
    wrong = [one for one in PLAYED if one["failed_criterion"] == "state"]
    assert len(wrong) == 3
    for one in wrong:
        assert by_code(one)["state"] is False


def test_nobody_talks_like_the_description_of_a_tool() -> None:
    for one in PLAYED:
        for text in (one["opening"], *one["wishes"]):
            assert borrowed(text, one["descriptions"]) is None
