"""How a dataset was decided: rule, word and failure, and what a later grading changed."""

from pathlib import Path

import pytest

from records.store.dataset import Dataset
from synth.publish.decisions import FATES, decisions
from synth.publish.regrading import regrading
from synth.publish.report import report_html, summary_markdown
from tests.records.rows import row
from tests.synth.publish.judged import curate, decision, told_false
from tests.synth.small_dataset import START, trajectory, write_dataset


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    made = write_dataset(
        tmp_path_factory.mktemp("decided") / "data", [(trajectory(name), None) for name in "abcde"]
    )
    blamed = {"failed_criterion": "truth", "attributed_to": "agent"}
    rows = [
        decision("a", None, self_judged=True),
        decision("b", "failed_truth", **blamed),
        decision("c", "user_error", attributed_to="user"),
        decision("d", "near_duplicate"),
        decision("e", None, decided_by="code", judge_status="below_minimum"),
    ]
    curate(made, rows, told_false("b"))
    return made


def test_the_agents_failures_are_counted_apart_from_those_of_others(dataset: Dataset) -> None:
    with dataset.connect() as db:
        found = decisions(db)
    assert {row["name"]: row["n"] for row in found.parties} == {"agent": 1, "user": 1, "nobody": 1}
    by_reason = {row["reason"]: row for row in found.rejected}
    assert by_reason["failed_truth"]["criterion"] == "truth"
    for row_ in found.rejected:
        assert row_["n"] == sum(row_[party] for party in FATES)


def test_whose_word_decided_and_who_judged_itself_are_counted(dataset: Dataset) -> None:
    with dataset.connect() as db:
        found = decisions(db)
    assert {r["name"]: (r["n"], r["accepted"]) for r in found.decided_by} == {
        "code_and_judge": (4, 1),
        "code": (1, 1),
    }
    assert found.code_alone == 1
    assert (found.judged, found.self_judged) == (5, 1)


def test_each_criterion_is_counted_by_the_verdict_that_counts(dataset: Dataset) -> None:
    with dataset.connect() as db:
        criteria = {row["name"]: row for row in decisions(db).criteria}
    assert (criteria["truth"]["code"], criteria["truth"]["judge"]) == (0, 1)
    assert (criteria["state"]["code"], criteria["state"]["judge"]) == (1, 0)
    assert [criteria[i]["decides"] for i in ("truth", "helpful")] == ["yes", "no, scored"]
    assert criteria["truth"]["passed"] == 0


@pytest.mark.parametrize(
    ("judging", "threshold"),
    [
        ({}, 0.7),
        ({"decision": {"pass_threshold": 0.9, "scored_only": ["truth"]}}, 0.9),
        ({"rubric": {"pass_threshold": 0.8}}, 0.8),
    ],
)
def test_the_rule_is_that_of_the_run_which_curated(
    judging: dict[str, object], threshold: float, tmp_path: Path
) -> None:
    made = write_dataset(tmp_path / "data", [(trajectory("t"), None)])
    started = row(
        "runs",
        invocation_id="i-2",
        event="started",
        happened_at=START.replace(year=2027),
        config={"judging": judging},
    )
    curate(made, [decision("t", "failed_truth", failed_criterion="truth")], told_false("t"))
    made.commit(run_id="run-1", stage="runs", shard=0, tables={"runs": [started]})
    with made.connect() as db:
        found = decisions(db)
    assert found.thresholds == [{"threshold": threshold, "n": 1}]
    decides = {row_["name"]: row_["decides"] for row_ in found.criteria}
    assert decides["truth"] == ("no, scored" if "decision" in judging else "yes")


def test_a_later_grading_is_compared_with_the_one_before_it(tmp_path: Path) -> None:
    first = [decision(i, None, curation_id="c-0", grading_id="grading-1") for i in "abcd"]
    earlier = write_dataset(tmp_path / "again", [(trajectory(i), None) for i in "abcde"])
    with earlier.connect() as db:
        assert regrading(earlier, db) is None
    curate(earlier, first)
    with earlier.connect() as db:
        assert regrading(earlier, db) is None
    later = [decision(i, None) for i in "acde"]
    failed = decision("b", "failed_truth", failed_criterion="truth")
    curate(earlier, [*later, failed], told_false("b"), 1)
    with earlier.connect() as db:
        found = regrading(earlier, db)
    assert found
    assert (found.earlier["n"], found.earlier["accepted"], found.later["accepted"]) == (4, 4, 3)
    assert (found.earlier["judge"], found.later["judge"]) == ("not noted", "judge-model")
    assert found.only_later == 1
    assert sum(change["n"] for change in found.changes) == 4
    turned = found.changes[0]
    assert (turned["before"], turned["after"]) == ("accepted", "rejected: failed_truth")
    assert (turned["criterion"], turned["example"]) == ("truth", "b")
    assert "No call wrote to anybody." in turned["evidence"]
    for page in (report_html(earlier), summary_markdown(earlier)):
        assert "4 accepted before" in page
        assert "3 after" in page


def test_report_and_summary_tell_how_it_was_decided(dataset: Dataset) -> None:
    for page in (report_html(dataset), summary_markdown(dataset)):
        plain = page.replace("\\", "")
        assert "Self-judged: 1 of 5" in plain
        assert "0.7 (5)" in plain
