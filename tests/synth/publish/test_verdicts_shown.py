"""What is shown of verdicts: the decision first, statements where they stand, passes folded."""

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from records.store.dataset import Dataset
from synth.judging.judge_rates import rates_of
from synth.publish.conversations import read
from synth.publish.report import report_html
from synth.publish.verdicts_shown import (
    asked_in_words,
    judge_in_words,
    statements_by_message,
)
from synth.publish.view import show_trajectory
from tests.synth.publish.judged import (
    BY_CODE,
    BY_JUDGE,
    REPLY,
    curate,
    decision,
    told_false,
    verdict,
)
from tests.synth.small_dataset import KEPT, calls_of, trajectory, write_dataset


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """One that the judge rejects for a statement, and one that an earlier curation rejected."""
    rows = [(trajectory("false"), None), (trajectory("older"), "failed_state")]
    made = write_dataset(tmp_path_factory.mktemp("judged") / "data", rows)
    marks = {"failed_criterion": "truth", "attributed_to": "agent", "self_judged": True}
    curate(made, [decision("false", "failed_truth", **marks)], told_false("false"))
    return made


def shown(dataset: Dataset, trajectory_id: str) -> str:
    buffer = io.StringIO()
    show_trajectory(dataset, trajectory_id, console=Console(file=buffer, width=120))
    return buffer.getvalue()


def test_of_a_statement_the_judges_finding_stands_where_code_left_it_open() -> None:
    rows = [
        verdict("t", "truth", "code", None, details=BY_CODE),
        verdict("t", "truth", "judge", False, details=BY_JUDGE),
        verdict("t", "truth", "panel:other", True, details=[{**BY_JUDGE[1], "finding": "shown"}]),
    ]
    [(place, found)] = statements_by_message(rows, judge_counts=True).items()
    assert place == REPLY
    assert [(s.says, s.is_true, s.found_by) for s in found] == [
        ("Done.", True, "judge"),
        ("It costs 20 EUR.", True, "code"),
        ("I wrote to the harbour.", False, "judge"),
    ]


@pytest.mark.parametrize(
    ("entry", "is_true"),
    [
        ({"finding": "open"}, None),
        ({"finding": "contradicted", "evidence": "It is 30 EUR."}, False),
        ({"finding": "shown", "supported": False}, False),
        ({"finding": "shown", "supported": True}, True),
        ({"finding": "no_claim", "supported": True}, True),
    ],
)
def test_what_is_true_is_what_the_verdict_made_of_the_finding(
    entry: dict[str, Any], is_true: bool | None
) -> None:
    details = [{"id": "s1", "message": 3, "says": "It is."} | entry]
    rows = [verdict("t", "truth", "code", None, details=details)]
    [(one,)] = statements_by_message(rows, judge_counts=False).values()
    assert one.is_true is is_true


def test_the_decision_names_the_one_criterion_that_rejected(dataset: Dataset) -> None:
    new, old = read(dataset, ["false", "older"])
    assert new.decision.failed
    assert old.decision.failed
    assert (new.decision.failed.criterion, new.decision.failed.decided_by) == ("truth", "judge")
    assert new.decision.failed.quote == "I wrote to the harbour."
    assert old.decision.failed.criterion == "goal"
    facts = dict(new.decision.facts)
    assert facts["decided by"] == "code and judge"
    assert facts["failure of"] == "the agent"
    assert facts["score"] == "a mandatory criterion failed, so the score (0.75) does not matter"
    assert dict(old.decision.facts)["decided by"] == "not noted"


def test_the_score_is_the_cause_only_where_it_is(tmp_path: Path) -> None:
    made = write_dataset(tmp_path / "data", [(trajectory("low"), None), (trajectory("cut"), None)])
    curate(made, [decision("low", "low_score", score=0.5), decision("cut", "max_turns")])
    low, cut = read(made, ["low", "cut"])
    assert dict(low.decision.facts)["score"] == "0.50, accepted from 0.70"
    assert dict(cut.decision.facts)["score"] == "0.75, which is not why it was rejected"


def test_what_was_to_be_told_reads_as_what_was_asked() -> None:
    told = {"kind": "communicate", "words": "The user is told, truthfully: fee; day (of: Pay.)"}
    assert asked_in_words(told | {"check": {"values": [98, "May 2"]}}) == (
        "Was to be told: fee \u2014 98; day \u2014 May 2 (of: Pay.)"
    )
    assert asked_in_words(told | {"check": {"values": [1, 2, 3]}}) == (
        "Was to be told: fee; day \u2014 1, 2, 3 (of: Pay.)"
    )
    assert asked_in_words(told | {"kind": "nl"}) == told["words"]


def test_a_judge_is_told_with_what_was_measured_of_it() -> None:
    rates = rates_of([(False, True)] + [(False, False)] * 9 + [(True, True)] * 4 + [(True, False)])
    assert judge_in_words("a-model", rates) == (
        "The judge is a-model. When it was tried, it passed 1 of 10 replies with a known fault "
        "(false accepts) and rejected 1 of 5 that are fine (false rejects)."
    )
    assert judge_in_words("", rates_of(())) == (
        "The judge is not noted. Its error rates are not measured."
    )


def test_a_judge_whose_word_does_not_count_rejects_nothing(tmp_path: Path) -> None:
    made = write_dataset(tmp_path / "data", [(trajectory("t"), None)])
    marks = {"decided_by": "code", "judge_status": "below_minimum"}
    curate(made, [decision("t", None, **marks)], told_false("t"))
    [talk] = read(made, ["t"])
    assert talk.decision.failed is None
    passed = {one.criterion: one.passed for one in talk.criteria}
    assert passed == {"goal": True, "truth": None, "manners": None, "helpful": None}
    said = {one.says: (one.is_true, one.finding) for one in talk.statements[REPLY]}
    assert said["I wrote to the harbour."] == (None, "not decided")
    assert said["It costs 20 EUR."] == (True, "matches the records")


def test_a_criterion_of_an_injected_outcome_is_shown_with_its_words(tmp_path: Path) -> None:
    made = write_dataset(tmp_path / "data", [(trajectory("t"), None)])
    calls = [
        call | {"injected_outcome": "stale"} if call["name"] == "rent_boat" else call
        for call in calls_of(trajectory("t"))
    ]
    graded = [*told_false("t"), verdict("t", "after_old", "judge", True)]
    made.commit(
        run_id="run-1",
        stage="rollouts",
        shard=7,
        tables={"trajectories": [trajectory("t")], "tool_calls": calls},
        items={"t": KEPT},
        supersedes=True,
    )
    curate(made, [decision("t", None)], graded)
    [talk] = read(made, ["t"])
    words = {one.criterion: one.words for one in talk.criteria}
    assert words["after_old"].startswith("The assistant does not trust a result of `rent_boat`")


def test_on_a_terminal_the_decision_comes_first_and_the_false_statement_is_marked(
    dataset: Dataset,
) -> None:
    text = shown(dataset, "false")
    order = ["failed_truth", "I wrote to the harbour.", "trajectory", "It costs 20 EUR"]
    places = [text.index(words) for words in order[:3]]
    assert places == sorted(places)
    reply = text.index("Done, it costs 20 EUR.")
    assert text.index("FALSE (not shown, judge): I wrote to the harbour.") > reply
    assert text.index("statements (follows from the rest: 1, matches the records: 1)") > reply
    assert "passed: goal (code), manners (judge), helpful (judge)" in text
    assert "self-judged" in text
    assert "judge says so" not in text


def test_in_the_report_the_false_statement_stands_open_beside_its_reply(dataset: Dataset) -> None:
    html = report_html(dataset)
    talk = html[html.index("failed_truth</bdi>") :]
    decided = talk.index('<div class="decision bad">')
    reply = talk.index("Done, it costs 20 EUR.")
    false = talk.index('<b class="text">I wrote to the harbour.</b>')
    folded = talk.index("follows from the rest: 1, matches the records: 1")
    criteria = talk.index("What it was graded by")
    assert decided < reply < false < folded < criteria
    assert "self-judged: the agent" in talk[decided:reply]
    assert "3 criteria passed: goal, manners, helpful" in talk[criteria:]
