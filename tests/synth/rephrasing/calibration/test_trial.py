"""The trial of the judge of rewrites: what is tried, what it costs, and what it says of a judge."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from records.store.dataset import Dataset
from synth.judging.judge_rates import JudgeStatus
from synth.rephrasing.calibration import planning
from synth.rephrasing.calibration.kinds import CHANGES, PARAPHRASE, UNTOUCHED
from synth.rephrasing.calibration.planning import RewrittenPartId, parts_in, plan_trial
from synth.rephrasing.calibration.rates import as_table, rates, status_of, trial_text, warning_of
from synth.rephrasing.calibration.report import trial_reports, warning_about
from synth.rephrasing.calibration.stage import parts_of, was_asked
from synth.rephrasing.fidelity.part_judge import VERDICTS
from synth.rephrasing.report import report_html, summary_markdown
from synth.rephrasing.stage import base_of
from synth.rephrasing.summary import lines, summarise
from synth.rephrasing.writing.assignment import Assigner
from synth.rephrasing.writing.config import (
    RephraseConfig,
    RephrasingTrialConfig,
    RewriteMinimumQuality,
)
from tests.synth.rephrasing.calibration.trial_work import (
    Body,
    app_of,
    blocks,
    by_rule,
    config_of,
    dataset_of,
    judging,
    kind_of,
    knowing,
    rewrites,
    tried,
    verdict_rows,
)
from tests.synth.scripted import ScriptedApp

MINIMUM = RewriteMinimumQuality()
CONFIG = config_of()
REWRITES = rewrites()
SAID = {
    RewrittenPartId(row["rephrasing_id"], row["part"]): row["verdict"]
    for row in verdict_rows(REWRITES)
}
WARMER = {"temperature": 0.9}


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return dataset_of(tmp_path / "d", REWRITES)


def test_there_are_kinds_enough_and_each_is_said_once() -> None:
    assert len({change.name for change in CHANGES}) == len(CHANGES) >= 15
    assert len({change.instruction for change in CHANGES}) == len(CHANGES)
    assert not {PARAPHRASE, UNTOUCHED} & {change.name for change in CHANGES}


def test_a_judge_that_accepts_all_is_below_its_minimum(dataset: Dataset, tmp_path: Path) -> None:
    rows = tried(dataset, tmp_path, app_of(lambda body: judging(body, accepts=True)), CONFIG)
    found = rates(rows)
    assert (found.fpr, found.tpr, found.num_failures, found.num_fine) == (1.0, 1.0, 20, 20)
    assert status_of(rows, MINIMUM) == "below_minimum"
    warning = warning_about(dataset, CONFIG)
    assert warning is not None
    assert "BELOW ITS MINIMUM" in warning
    assert "20 of 20 (95%: 84% to 100%) changed parts faithful" in warning
    assert not any(row["named"] for row in rows)
    for shown in (summary_markdown(dataset), report_html(dataset)):
        assert "BELOW ITS MINIMUM" in shown
        assert "opinion" in shown
    text = trial_text(as_table(rows, MINIMUM))
    assert text in "\n".join(lines(summarise(dataset)))
    assert "on trial: below minimum" in text
    assert len({len(line) for line in text.splitlines()[1:]}) == 1
    with dataset.connect() as db:
        query = "select count(*), sum(judge_passed::int) from rephrasing_calibration"
        assert db.execute(query).fetchall() == [(40, 40)]


def test_a_judge_that_rejects_all_is_below_its_minimum(dataset: Dataset, tmp_path: Path) -> None:
    app = app_of(lambda body: judging(body, accepts=False))
    rows = tried(dataset, tmp_path, app, config_of(at_most=10))
    head = as_table(rows, MINIMUM)[0]
    assert (head["fpr"], head["false_reject_rate"]) == (0.0, 1.0)
    assert head["judge_status"] == "below_minimum"


def test_a_judge_that_knows_is_measured_and_names_what_was_changed(
    dataset: Dataset, tmp_path: Path
) -> None:
    config = config_of(at_least=40)
    rows = tried(dataset, tmp_path, app_of(), config)
    [head, *below] = as_table(rows, MINIMUM)
    assert (head["false_accepts"], head["false_rejects"]) == (0, 0)
    assert head["num_named"] == head["num_failures"] == head["num_fine"] == 40
    assert head["judge_status"] == "measured"
    assert warning_about(dataset, config) is None
    by_kind = [line for line in below if line["kind"].startswith("change: ")]
    assert {line["num_failures"] for line in by_kind} == {2}
    assert len(by_kind) == len(CHANGES)
    controls = {line["kind"]: line["num_fine"] for line in below if "control: " in line["kind"]}
    assert controls == {"control: paraphrase": 20, "control: untouched": 20}


def test_a_second_run_of_the_same_judge_makes_nothing_anew_and_another_judge_all(
    dataset: Dataset, tmp_path: Path
) -> None:
    app = app_of()
    config = config_of(at_most=6)
    first = tried(dataset, tmp_path, app, config)
    asked = len(app.requests)
    assert tried(dataset, tmp_path / "again", app, config, shard=2) == []
    assert len(app.requests) == asked
    other = tried(dataset, tmp_path / "other", app, config_of("b", at_most=6), shard=3)
    assert len(other) == len(first)
    assert {row["trial_id"] for row in other}.isdisjoint(row["trial_id"] for row in first)
    assert len(trial_reports(dataset)) == 2


def test_runs_of_the_same_judge_add_up(dataset: Dataset, tmp_path: Path) -> None:
    first = tried(dataset, tmp_path, app_of(), config_of(at_most=6))
    more = tried(dataset, tmp_path / "more", app_of(), config_of(at_most=9), shard=2)
    assert (len(first), len(more)) == (12, 6)
    pairs = Counter((r["perturbation"], r["rephrasing_id"], r["part"]) for r in (*first, *more))
    assert max(pairs.values()) == 1


def test_an_open_item_is_planned_again_as_the_same_item() -> None:
    parts, config = parts_in(REWRITES, SAID), RephrasingTrialConfig(at_least=50)
    whole = plan_trial(parts, [], trial_id="t", writer="w", config=config)
    for some in (whole[::2], whole[:31], whole[7:]):
        before = [
            {
                "perturbation": item.data["sort"],
                "outcome": "tried" if number % 3 else "not_confirmed",
                "candidates": item.data["parts"],
                "writer_version": "w",
            }
            for number, item in enumerate(some)
        ]
        again = plan_trial(parts, before, trial_id="t", writer="w", config=config)
        assert {item.item_id for item in again} == {item.item_id for item in whole}


@pytest.mark.parametrize(
    ("num", "share", "expected"), [(0, 0.05, 0), (9, 0.05, 20), (9, 0.0, 0), (1000, 0.05, 50)]
)
def test_the_share_has_bounds(num: int, share: float, expected: int) -> None:
    parts = parts_in(REWRITES, SAID)._replace(num_judged=num)
    config = RephrasingTrialConfig(share=share)
    items = plan_trial(parts, [], trial_id="t", writer="w", config=config)
    changes = [i for i in items if i.data["sort"] not in (PARAPHRASE, UNTOUCHED)]
    assert (len(changes), len(items)) == (expected, 2 * expected)


def test_nobody_was_asked_about_an_untouched_part() -> None:
    rows = rewrites()
    rows[0]["chunks"][1]["faults"] = ["unfaithful"]
    parts = parts_in(rows, SAID)
    chunks = {row["rephrasing_id"]: row["chunks"] for row in rows}
    assert parts.unasked
    for i, number in parts.unasked:
        assert (i, number) not in SAID
        assert "unfaithful" not in chunks[i][number]["faults"]


def test_few_parts_of_many_are_looked_at_and_always_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    every = parts_in(REWRITES, SAID)
    monkeypatch.setattr(planning, "LOOKED_AT", 3)
    few, other_way = parts_in(REWRITES, SAID), parts_in(REWRITES[::-1], SAID)
    assert few.able == every.able[:3] == other_way.able
    assert few.unasked == every.unasked[:3] == other_way.unasked
    assert few.num_judged == every.num_judged


def test_what_a_judge_finds_unfaithful_is_not_changed_further() -> None:
    parts = parts_in(REWRITES, dict.fromkeys(SAID, "unfaithful"))
    assert parts.num_judged == len(SAID)
    assert parts.able == parts.unasked


def test_where_judges_differ_the_part_is_none_to_change(dataset: Dataset) -> None:
    [first, *_] = verdict_rows(REWRITES)
    part = RewrittenPartId(first["rephrasing_id"], first["part"])
    assert part in parts_of(dataset).able
    for shard, (judge, verdict) in enumerate((("b", "unfaithful"), ("c", "faithful")), 1):
        row = first | {"judge_id": judge, "verdict": verdict}
        dataset.commit(run_id="r", stage="s", shard=shard, tables={VERDICTS: [row]})
    assert part not in parts_of(dataset).able
    assert parts_of(dataset).num_judged == len(SAID)


def test_a_judge_was_asked_where_a_part_came_back_without_a_verdict(tmp_path: Path) -> None:
    rows = rewrites(judged=lambda number: False)
    assert not was_asked(dataset_of(tmp_path / "none", rows))
    rows[0]["chunks"][1]["faults"] = ["unfaithful"]
    assert was_asked(dataset_of(tmp_path / "one", rows))
    assert parts_of(Dataset.open(tmp_path / "one")).num_judged == 1


def test_where_all_parts_are_judged_every_control_is_a_paraphrase(tmp_path: Path) -> None:
    dataset = dataset_of(tmp_path / "d", rewrites(judged=lambda number: True))
    rows = tried(dataset, tmp_path, app_of(), config_of(at_most=5))
    assert {row["perturbation"] for row in rows if row["expected"]} == {PARAPHRASE}
    assert rates(rows).num_fine == 5


def _answered(kind: str, change: Any) -> ScriptedApp:
    """The generator by rule, whose answers of one kind are changed."""

    def answer(body: Body) -> str:
        if kind_of(body) == "judge":
            return knowing(body)
        said = json.loads(by_rule(body))
        return json.dumps(said | change(body, said) if kind_of(body) == kind else said)

    return ScriptedApp(answer)


@pytest.mark.parametrize(
    ("kind", "change", "outcome", "words"),
    [
        ("perturbation", lambda *_: {"old": "No such words."}, "not_written", "stands in the"),
        ("perturbation", lambda _, said: {"new": said["old"]}, "not_written", "in the same words"),
        ("perturbation", lambda _, said: {"new": said["old"] * 4}, "not_written", "times as many"),
        ("perturbation", lambda *_: {"new": "Never."}, "not_written", "times as many"),
        ("perturbation", lambda *_: {"has_place": False}, "no_place", "no place"),
        ("reading", lambda *_: {"agrees": "both"}, "not_confirmed", "both agrees"),
        ("reading", lambda *_: {"agrees": "neither"}, "not_confirmed", "neither agrees"),
        ("reading", lambda *_: {"quote": "nowhere at all"}, "not_confirmed", "does not stand"),
    ],
)
def test_what_is_not_confirmed_tries_no_judge_and_says_why(
    dataset: Dataset, tmp_path: Path, kind: str, change: Any, outcome: str, words: str
) -> None:
    app = _answered(kind, change)
    rows = tried(dataset, tmp_path, app, config_of(at_least=1, at_most=1))
    [row] = [row for row in rows if not row["expected"]]
    assert (row["outcome"], row["judge_passed"], len(row["attempts"])) == (outcome, None, 3)
    assert words in row["detail"]
    statuses = dataset.item_statuses("rephrasing-calibration").values()
    assert {status.reason for status in statuses if status.status == "dropped"} >= {outcome}
    assert rates(rows).num_failures == 0
    assert as_table(rows, MINIMUM)[0][f"num_{outcome}"] >= 1


def test_a_second_reader_is_shown_both_sentences_and_the_source_alone(
    dataset: Dataset, tmp_path: Path
) -> None:
    app = app_of()
    rows = tried(dataset, tmp_path, app, config_of(at_most=14))
    read = [blocks(body) for body in app.requests if kind_of(body) == "reading"]
    edits = {frozenset((row["edit"]["old"], row["edit"]["new"])) for row in rows if row["edit"]}
    assert {frozenset(shown[1:]) for shown in read} == edits
    firsts = Counter("or so they say" in shown[1] for shown in read)
    assert min(firsts.values()) > 3


def test_a_judge_is_unmeasured_where_nobody_writes(dataset: Dataset, tmp_path: Path) -> None:
    roles = {**CONFIG.roles}
    del roles["generator"]
    config = CONFIG.model_validate({**CONFIG.model_dump(), "roles": roles})
    app = app_of()
    assert tried(dataset, tmp_path, app, config) == []
    assert app.requests == []
    warning = warning_about(dataset, config)
    assert warning is not None
    assert "unmeasured" in warning
    assert "roles.generator has no endpoint" in warning
    [report] = trial_reports(dataset)
    assert (report.status, report.table) == ("unmeasured", [])
    nobody = dataset_of(tmp_path / "nobody", rewrites(judged=lambda number: False))
    assert (warning_about(nobody, config), trial_reports(nobody)) == (None, [])


@pytest.mark.parametrize(
    ("num", "status"), [(4, "unmeasured"), (12, "uncertain"), (20, "measured")]
)
def test_few_trials_leave_a_judge_uncertain_or_unmeasured(num: int, status: JudgeStatus) -> None:
    rows = [{"expected": n % 2 == 0, "judge_passed": n % 2 == 0} for n in range(2 * num)]
    assert status_of(rows, MINIMUM) == status
    warning = warning_of(status, rates(rows), MINIMUM)
    assert (warning is None) == (status == "measured")
    assert warning is None or f"{num} " in warning


def test_the_trial_decides_no_rewrite() -> None:
    """Ids of rewrites hang on nothing that only the trial needs; a run's own id hangs on who writes
    its changed parts, where there are any."""
    other = {**CONFIG.roles, "generator": CONFIG.roles["generator"].model_copy(update=WARMER)}
    offline = {**CONFIG.roles, "generator": RephraseConfig().roles["generator"]}
    configs = [CONFIG, config_of(share=0.0), config_of(at_most=3)]
    configs += [CONFIG.model_copy(update={"roles": roles}) for roles in (other, offline)]
    assert len({base_of(config, Assigner(config)) for config in configs}) == 1
    ids = [config.run_id for config in configs]
    assert ids[0] == ids[2]
    assert ids[1] == ids[4]
    assert len(set(ids)) == 3


class KilledError(BaseException):
    """Passes everything, as a kill does."""


def test_a_kill_in_the_middle_pays_nothing_twice(tmp_path: Path) -> None:
    config = config_of(at_least=4, at_most=4)
    whole = tried(dataset_of(tmp_path / "whole", REWRITES), tmp_path, app := app_of(), config)
    (folder := tmp_path / "killed").mkdir()
    dataset = dataset_of(folder / "d", REWRITES)
    paid: list[Body] = []

    def until(most: int) -> ScriptedApp:
        def answer(body: Body) -> str:
            if len(paid) == most:
                raise KilledError
            paid.append(body)
            return knowing(body) if kind_of(body) == "judge" else by_rule(body)

        return ScriptedApp(answer)

    for most in (3, 7, 13):
        with pytest.raises(KilledError):
            tried(dataset, folder, until(most), config)
    assert tried(dataset, folder, until(99), config) == whole
    assert paid == app.requests
