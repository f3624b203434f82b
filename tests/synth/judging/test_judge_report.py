"""What is published of a judge: whose rates count, what it cost, and its trial apart."""

from pathlib import Path
from typing import Any

import pytest

from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.judging.judge_rates import MinimumQuality, as_table
from synth.judging.judge_report import judge_costs, judge_report, trial_text
from synth.judging.stages import trials
from tests.records.rows import row
from tests.synth.small_dataset import conversation, llm_call, trajectory, write_dataset


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    ones = [trajectory(f"t{i}", conversation("Done.")) for i in range(3)]
    return write_dataset(tmp_path / "d", [(one, None) for one in ones])


def tried(i: int, perturbation: str, *, passed: bool, **more: Any) -> Row:
    values: dict[str, Any] = {
        "grading_id": "grading-1",
        "trial_id": "trial-1",
        "trajectory_id": f"t{i}",
        "perturbation": perturbation,
        "criterion_id": "truth",
        "kind": "nl",
        "expected": perturbation == "control",
        "judge_passed": passed,
        "outcome": "tried",
        "writer_version": "w",
        "checker_version": "m@p",
        "split": "train",
    }
    return row("calibration", **values | more)


def commit(dataset: Dataset, run_id: str, shard: int, **tables: list[Row]) -> None:
    dataset.commit(run_id=run_id, stage="test", shard=shard, tables=tables)


def test_a_grading_has_what_its_judge_was_tried_with_before_and_its_own_controls(
    dataset: Dataset,
) -> None:
    commit(
        dataset,
        "run-1",
        1,
        calibration=[
            tried(0, "rude", passed=False),
            tried(0, "control", passed=True),
            tried(1, "rude", passed=True, trial_id="another judge", grading_id="grading-3"),
        ],
    )
    later = tried(1, "control", passed=False, grading_id="grading-2")
    older = tried(2, "nl_rude", passed=True, grading_id="grading-0", trial_id=None, outcome=None)
    commit(dataset, "run-2", 1, calibration=[later, older])

    def found(grading_id: str) -> set[tuple[str, bool]]:
        return {(r["perturbation"], r["judge_passed"]) for r in trials(dataset, grading_id)}

    assert found("grading-1") == {("rude", False), ("control", True)}
    assert found("grading-2") == {("rude", False), ("control", False)}
    assert found("grading-3") == {("rude", True)}
    assert found("grading-0") == {("nl_rude", True)}
    assert judge_report(dataset, "grading-2").rates.num_failures == 1


def test_the_trial_is_told_apart_from_the_judges_cost_and_other_gradings(dataset: Dataset) -> None:
    def call(name: str, stage: str, cost: float) -> Row:
        return llm_call(name, "judge", "m", cost=cost) | {"stage": stage}

    commit(
        dataset,
        "run-1",
        1,
        llm_calls=[call("g", "grading", 0.05), call("c", "calibration", 0.02)],
        calibration=[tried(0, "rude", passed=False)],
    )
    verdict = dict(dataset.rows("verdicts")[0]) | {"grading_id": "grading-2"}
    commit(dataset, "run-2", 1, llm_calls=[call("h", "grading", 0.3)], verdicts=[verdict])
    with dataset.connect() as db:
        assert judge_costs(db, "grading-1") == pytest.approx((0.5, 0.05, 0.02))
        assert judge_costs(db, "grading-2") == pytest.approx((0.5, 0.3, 0.0))
    words = judge_report(dataset, "grading-1").words
    assert "judging cost 10.0% of the rollouts, the judge's trial 4.0%" in words
    assert words.startswith("judge: unmeasured, not calibrated (0 labels), false accepts 0 of 1")


def test_how_many_statements_pass_without_words_that_show_them_is_told(dataset: Dataset) -> None:
    kept = dict(dataset.rows("verdicts")[0]) | {"criterion_id": "truth", "grading_id": "g"}
    said = ["follows", "no_claim", "no_claim", "shown"]
    details = [{"id": f"s{i}", "finding": finding} for i, finding in enumerate(said)]
    by_code = kept | {"checked_by": "code", "details": [{"id": "s9", "finding": "open"}]}
    judged = kept | {"checked_by": "judge", "details": details}
    commit(dataset, "run-1", 1, verdicts=[judged, by_code, kept | {"checked_by": "panel:m"}])
    report = judge_report(dataset, "g")
    assert report.findings == {"follows": 1, "no_claim": 2, "shown": 1}
    assert ", of 4 open statements 50% claim nothing and 25% follow" in report.words


def test_a_trial_is_told_on_one_page() -> None:
    rows = [tried(i, "rude", passed=False, language="de", confirmed_by="code") for i in range(12)]
    rows += [tried(i, "hedge", passed=True, language="en") for i in range(2)]
    rows += [tried(i, "paraphrase", passed=True, expected=True, language="en") for i in range(5)]
    out = tried(0, "dump", passed=False, language="en") | {"judge_passed": None}
    rows += [out | {"outcome": outcome} for outcome in ("no_place", "not_confirmed")]
    text = trial_text(as_table(rows, MinimumQuality()))
    lines = [line.split() for line in text.splitlines()]
    assert text.startswith("The judge on trial: uncertain\nasked for 21: confirmed 12 by code")
    assert "counted out 1 no place, 0 not written, 1 not confirmed" in text
    for told in (
        "judge 14 2 4% to 40% 0 5 5 57% to 100% 21 2",
        "by fault: rude 12 0 0% to 24% 0 12",
        "by fault: dump 2 2",
        "by language: de 12 0 0% to 24% 0 12",
        "by model: m 14 2 4% to 40% 0 5 5 57% to 100% 19",
    ):
        assert told.split() in lines, told
    assert max(map(len, text.splitlines())) <= 120
    assert trial_text(as_table([], MinimumQuality())) == ""
