"""The judge on trial: the meter measures declared rates, and the minimum quality catches a useless
judge."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offline_llm.app import create_app
from offline_llm.settings.rates import AspectRates, JudgeErrors
from offline_llm.settings.settings import OfflineSettings
from records.tables.schemas import TABLES, Row
from synth.engine.stages import Item
from synth.judging.calibration import JudgingConfig, plan_calibration, sample, try_judge
from synth.judging.curation import candidate_of
from synth.judging.judge import judge
from synth.judging.judge_rates import (
    MinimumQuality,
    Rates,
    as_table,
    attack_rates,
    judge_rates,
    judge_status_of,
    rates_of,
    status_on_judged,
    unsupported_claim_rates,
    warning_of,
)
from synth.judging.perturbation.episodes import PassedEpisode
from synth.judging.perturbation.registry import perturb
from synth.render.intervals import wilson
from synth.rubrics.built_in import BUILT_IN
from synth.rubrics.criteria import Rubric
from tests.synth.judging.perturbation_work import Oracle, sources
from tests.synth.scripted import ROLES, ScriptedApp, model

CONFIG = JudgingConfig(perturbed_share=1.0)


def planned(config: JudgingConfig = CONFIG) -> list[Item]:
    passed = sources()
    return plan_calibration(
        passed, grading_id="g", graded=len(passed), config=config, kinds=BUILT_IN
    )


def tried(folder: Path, false_accept: float, false_reject: float) -> list[Row]:
    """The rows of `calibration` that a judge with these rates leaves."""
    oracle = Oracle(false_accept=false_accept, false_reject=false_reject)
    by_id = {source.trajectory["trajectory_id"]: source for source in sources()}
    items = planned()
    for item in items:
        negative = perturb(item.data["plant"], source) if (source := _of(item, by_id)) else None
        if negative is not None:
            oracle.learn(negative.messages, negative.criterion.id)

    async def run() -> list[Row]:
        rows: list[Row] = []
        async with model(ScriptedApp(oracle), folder) as llm:
            for item in items:
                source = by_id[item.data["trajectory_id"]]
                made = await try_judge(
                    item,
                    llm,
                    source,
                    verdicts=_verdicts(source, oracle),
                    judge_role=ROLES["judge"],
                    kinds=BUILT_IN,
                )
                rows += made.tables.get("calibration", [])
        return rows

    return asyncio.run(run())


def _of(item: Item, by_id: dict[str, PassedEpisode]) -> PassedEpisode | None:
    return None if item.data["plant"] == "control" else by_id[item.data["trajectory_id"]]


def _verdicts(source: PassedEpisode, oracle: Oracle) -> list[Row]:
    """What grading left on the untouched episode."""
    rows = []
    for c in source.rubric.criteria:
        judged = oracle.draw_fine()
        row = {"criterion_id": c.id, "kind": c.kind, "checker_version": "v", "supported": True}
        row |= {"evidence": "", "quote": ""}
        rows.append(row | {"checked_by": "judge", "passed": judged})
        if c.kind != "nl":
            rows.append(row | {"checked_by": "code", "passed": True})
    return rows


@pytest.mark.slow
@pytest.mark.parametrize(("false_accept", "false_reject"), [(0.08, 0.05), (0.3, 0.15)])
def test_measured_rates_agree_with_declared_ones(
    false_accept: float, false_reject: float, tmp_path: Path
) -> None:
    rows = tried(tmp_path, false_accept, false_reject)
    columns = set(TABLES["calibration"].schema.names) - {"run_id", "schema_version"}
    assert all(set(row) == columns for row in rows)
    rates = judge_rates(rows)
    assert {"state", "call", "communicate", "format", "nl"} <= rates.keys()
    held: list[bool] = []
    for own in [*rates.values(), *attack_rates(rows).values()]:
        if own.num_failures >= 10:
            low, high = wilson(own.false_accepts, own.num_failures)
            held.append(low <= false_accept <= high)
        if own.num_fine >= 10:
            low, high = wilson(own.num_fine - own.true_accepts, own.num_fine)
            held.append(low <= false_reject <= high)
    assert len(held) >= 10
    assert sum(held) >= 0.85 * len(held)  # each misses one time in twenty
    assert rates["nl"].num_failures >= 50
    assert unsupported_claim_rates(rows).num_failures >= 10


@pytest.mark.slow
@pytest.mark.parametrize(
    ("false_accept", "false_reject", "status"),
    [(1.0, 0.0, "below_minimum"), (0.0, 1.0, "below_minimum"), (0.05, 0.05, "measured")],
)
def test_a_judge_that_passes_everything_or_nothing_is_caught(
    false_accept: float, false_reject: float, status: str, tmp_path: Path
) -> None:
    rows = tried(tmp_path, false_accept, false_reject)
    floor = MinimumQuality()
    found = status_on_judged(rows, floor)
    assert found == status
    warning = warning_of(found, judge_rates(rows))
    assert ("BELOW ITS MINIMUM QUALITY" in (warning or "")) == (status == "below_minimum")
    by_kind = {r["kind"]: r["judge_status"] for r in as_table(rows, floor) if r["who"] == "judge"}
    assert by_kind["state"] == status


def test_without_negatives_a_kind_is_unmeasured() -> None:
    assert sample(["a", "b"], graded=2, seed=0, config=JudgingConfig(perturbed_share=0.0)) == []
    assert planned(JudgingConfig(perturbed_share=0.0)) == []
    assert status_on_judged([], MinimumQuality()) == "unmeasured"
    assert judge_status_of(Rates(9, 0, 9, 9), MinimumQuality()) == "unmeasured"
    assert judge_status_of(Rates(10, 0, 9, 9), MinimumQuality()) == "uncertain"
    assert judge_status_of(Rates(16, 0, 9, 9), MinimumQuality()) == "measured"


def test_a_rate_within_the_minimum_by_chance_is_uncertain_and_said() -> None:
    few, many = Rates(20, 3, 40, 38), Rates(400, 60, 40, 38)
    assert judge_status_of(few, MinimumQuality()) == "uncertain"
    assert judge_status_of(many, MinimumQuality()) == "measured"
    assert "95% interval up to 36%" in (warning_of("uncertain", {"nl": few}) or "")


def test_failures_with_text_aimed_at_the_judge_stand_apart_from_plain_ones() -> None:
    def tried_with(channel: str | None, *, passed: bool) -> Row:
        row = {"kind": "nl", "channel": channel, "expected": False, "code_passed": None}
        return row | {"judge_passed": passed}

    rows = [tried_with(None, passed=False)] * 30 + [tried_with("file", passed=True)] * 5
    table = {(row["who"], row["kind"]): row for row in as_table(rows, MinimumQuality())}
    counts = {
        who: (row["false_accepts"], row["num_failures"])
        for (who, kind), row in table.items()
        if kind == "nl"
    }
    assert counts == {
        "judge": (5, 35),
        "judge, nothing aimed at it": (0, 30),
        "judge, aimed at": (5, 5),
    }


def test_negatives_are_spread_over_failures_and_bounded() -> None:
    items = planned(JudgingConfig(perturbed_share=1.0, max_of_one=3))
    counts: dict[str, int] = {}
    for item in items:
        if item.data["confirmed"]:
            counts[item.data["plant"]] = counts.get(item.data["plant"], 0) + 1
    controls = counts.pop("control")
    assert max(counts.values()) <= 3
    assert len(counts) >= 18
    assert 0 < controls <= sum(counts.values())
    assert len({item.item_id for item in items}) == len(items)


def test_the_sample_is_the_same_for_every_judge_and_keeps_its_order() -> None:
    ids = [f"t{i}" for i in range(200)]
    few = sample(ids, graded=200, seed=1, config=JudgingConfig(perturbed_share=0.1))
    assert len(few) == 20
    assert (
        sample(reversed(ids), graded=200, seed=1, config=JudgingConfig(perturbed_share=0.1)) == few
    )
    more = sample(ids, graded=200, seed=1, config=JudgingConfig(perturbed_share=0.5))
    assert more[:20] == few


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 60), st.integers(0, 60))
def test_the_status_is_what_the_minimum_quality_says(fa: int, tr: int, ta: int, fr: int) -> None:
    rates, floor = Rates(fa + tr, fa, ta + fr, ta), MinimumQuality()
    status = judge_status_of(rates, floor)
    if fa + tr < floor.min_perturbed or ta + fr == 0:
        assert status == "unmeasured"
    elif fa > floor.max_false_accept * (fa + tr):
        assert status == "below_minimum"
    elif status != "below_minimum":
        assert rates.kappa is not None
        assert rates.kappa >= floor.min_kappa
        _, high = wilson(fa, fa + tr)
        assert (status == "measured") == (high <= floor.max_false_accept)


NL = {"id": "tone", "kind": "nl", "words": "w", "weight": 1.0}
GOAL = {"id": "goal", "kind": "call", "words": "w", "weight": 3.0, "mandatory": True}


@pytest.mark.parametrize(
    ("mandatory", "weight", "reason"),
    [(True, 1.0, "judge_below_minimum"), (False, 3.0, "judge_below_minimum"), (False, 1.0, None)],
)
def test_below_the_minimum_quality_nothing_is_accepted_by_the_judges_word(
    mandatory: bool, weight: float, reason: str | None
) -> None:
    criteria = [GOAL, NL | {"mandatory": mandatory, "weight": weight}]
    verdicts = [
        {"criterion_id": "goal", "kind": "call", "checked_by": "code", "score": 1.0},
        {"criterion_id": "tone", "kind": "nl", "checked_by": "judge", "score": 1.0},
    ]
    trajectory = {
        "trajectory_id": "t",
        "split": "train",
        "termination_reason": "user_done",
        "messages": [],
    }
    task = {"task_id": "k", "domain_id": "d", "initial_state": {}, "rubric": {"criteria": criteria}}
    for status in ("measured", "unmeasured", "below_minimum"):
        found = candidate_of(trajectory, [], verdicts, task, status)
        assert found is not None
        assert found.drop_reason == (reason if status == "below_minimum" else None)
        assert found.judge_status == status


@pytest.mark.slow
def test_the_offline_judge_errs_as_often_as_it_declares(tmp_path: Path) -> None:
    """On top of what its rules miss: the same plants before it without declared errors say what."""
    exact = AspectRates(did=0.0, said=0.0, avoided=0.0, other=0.0)
    ruled = OfflineSettings(judge_errors=JudgeErrors(false_accept=exact, false_reject=exact))
    declared = OfflineSettings().judge_errors
    by_rule, measured = (offline_rates(tmp_path, s) for s in (ruled, OfflineSettings()))
    missed = by_rule.false_accepts / by_rule.num_failures
    due = missed * (1 - declared.false_reject.other) + (1 - missed) * declared.false_accept.other
    low, high = wilson(measured.false_accepts, measured.num_failures)
    assert low <= due <= high
    assert measured.num_failures >= 80


def offline_rates(folder: Path, settings: OfflineSettings) -> Rates:
    """Of perturbed negatives of manner, which the judge knows as `other`."""
    made = [
        negative
        for source in sources()[1::8]
        for name in ("nl_rude", "nl_curt", "nl_jargon", "nl_rambling")
        if (negative := perturb(name, source))
    ]

    async def run() -> Rates:
        own = folder / str(settings.judge_errors.false_accept.did)
        own.mkdir()
        async with model(create_app(settings), own) as llm:
            outcomes = []
            for number, negative in enumerate(made):
                rubric = Rubric(criteria=(negative.criterion,))
                opinions = await judge(llm, rubric, negative.messages, item=str(number))
                outcomes.append((False, opinions[negative.criterion.id].passed))
        return rates_of(outcomes)

    return asyncio.run(run())
