"""What the rates of a trial decide: a useless judge is caught, and too few tries say so."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from records.tables.schemas import Row
from synth.judging.calibration import JudgingConfig
from synth.judging.judge_rates import (
    MinimumQuality,
    Rates,
    as_table,
    judge_rates,
    judge_status_of,
    rates_of,
    warning_of,
)
from synth.judging.perturbation.registry import CONTROL, PARAPHRASE, PERTURBATIONS
from synth.render.intervals import wilson
from tests.synth.judging.trial_work import planned


def test_without_negatives_the_judge_is_unmeasured() -> None:
    assert planned(config=JudgingConfig(perturbed_share=0.0)) == []
    assert planned([]) == []
    nothing = judge_rates([])
    assert judge_status_of(nothing, MinimumQuality()) == "unmeasured"
    assert as_table([], MinimumQuality()) == []
    assert judge_status_of(Rates(9, 0, 9, 9), MinimumQuality()) == "unmeasured"
    assert judge_status_of(Rates(10, 0, 9, 9), MinimumQuality()) == "uncertain"
    assert judge_status_of(Rates(16, 0, 9, 9), MinimumQuality()) == "measured"
    assert "unmeasured (9 perturbed" in (warning_of("unmeasured", Rates(9, 0, 9, 9)) or "")


def test_a_rate_within_the_minimum_by_chance_is_uncertain_and_said() -> None:
    few, many = Rates(20, 3, 40, 38), Rates(400, 60, 40, 38)
    assert judge_status_of(few, MinimumQuality()) == "uncertain"
    assert judge_status_of(many, MinimumQuality()) == "measured"
    assert "95% interval 5% to 36%" in (warning_of("uncertain", few) or "")


@pytest.mark.parametrize(
    "rates", [Rates(30, 30, 30, 30), Rates(30, 0, 30, 0)], ids=["passes all", "passes nothing"]
)
def test_a_judge_that_passes_everything_or_nothing_is_caught(rates: Rates) -> None:
    status = judge_status_of(rates, MinimumQuality())
    assert status == "below_minimum"
    assert "BELOW ITS MINIMUM QUALITY" in (warning_of(status, rates) or "")


def trial(perturbation: str, *, passed: bool | None, **more: Any) -> Row:
    row = {
        "perturbation": perturbation,
        "expected": perturbation in (CONTROL, PARAPHRASE),
        "judge_passed": passed,
        "outcome": "tried",
        "confirmed_by": None,
        "channel": None,
        "named": None,
        "language": "en",
        "checker_version": "m@p",
    }
    return row | more


def test_the_status_is_decided_over_all_kinds_together() -> None:
    fine = [trial(CONTROL, passed=True)] * 30 + [trial(PARAPHRASE, passed=True)] * 10
    rude = [trial("rude", passed=False)] * 40
    hedge = [trial("hedge", passed=True)] * 9  # nine of nine wrong, and too few to stand alone
    table = as_table(fine + rude + hedge, MinimumQuality())
    assert [row["judge_status"] for row in table if row["judge_status"]] == ["uncertain"]
    assert table[0]["who"] == "judge"
    worse = as_table(fine + rude + hedge * 2, MinimumQuality())
    assert worse[0]["judge_status"] == "below_minimum"


Passes = Callable[[str, str, bool, float], bool]
"""Kind, language, whether something is wrong and a draw -> whether a scripted judge passes it."""


@pytest.mark.parametrize(
    ("passes", "status"),
    [
        (lambda kind, language, is_wrong, draw: True, "below_minimum"),
        (lambda kind, language, is_wrong, draw: False, "below_minimum"),
        (lambda kind, language, is_wrong, draw: draw < 0.5, "below_minimum"),
        (lambda kind, language, is_wrong, draw: draw < (0.04 if is_wrong else 0.9), "measured"),
        (lambda kind, language, is_wrong, draw: not is_wrong and draw < 0.1, "below_minimum"),
        (lambda kind, language, is_wrong, draw: not is_wrong or kind == "hedge", "measured"),
        (lambda kind, language, is_wrong, draw: not is_wrong or language == "de", "below_minimum"),
        (lambda kind, language, is_wrong, draw: not is_wrong and language != "de", "measured"),
    ],
    ids=[
        *("passes everything", "rejects everything", "random", "good", "rejects most controls"),
        *("blind to one kind", "passes German", "rejects German"),
    ],
)
def test_scripted_judges_come_out_as_what_they_are(passes: Passes, status: str) -> None:
    draws, languages = Random(7), ("en", "de", "fr", "es")
    kinds = [*PERTURBATIONS * 4, *[PARAPHRASE] * 44]
    rows: list[Row] = []
    for number, kind in enumerate(kinds):
        language = languages[number % 4]
        passed = passes(kind, language, kind != PARAPHRASE, draws.random())
        rows.append(trial(kind, passed=passed, language=language))
    assert judge_status_of(judge_rates(rows), MinimumQuality()) == status
    table = {(row["who"], row["kind"]): row for row in as_table(rows, MinimumQuality())}
    if status == "measured":  # what is weak in part stands in the lines of that part
        hedge, german = table["judge, by fault", "hedge"], table["judge, by language", "de"]
        weak = (hedge["fpr"] == 1.0) + (german["tpr"] == 0.0)
        assert weak == (passes("hedge", "de", True, 0.5) or not passes("", "de", False, 0.5))


def test_few_tries_suffice_where_the_whole_interval_lies_beyond_a_limit() -> None:
    assert judge_status_of(Rates(5, 5, 1, 1), MinimumQuality()) == "below_minimum"
    assert judge_status_of(Rates(5, 0, 5, 0), MinimumQuality()) == "below_minimum"
    assert judge_status_of(Rates(5, 0, 2, 0), MinimumQuality()) == "unmeasured"
    assert judge_status_of(Rates(30, 0, 3, 3), MinimumQuality()) == "unmeasured"
    assert judge_status_of(Rates(30, 0, 9, 6), MinimumQuality()) == "uncertain"


def test_rates_are_told_by_fault_by_language_and_by_model() -> None:
    rows = [
        trial("rude", passed=False, named=True),
        trial("rude", passed=True, language="de", checker_version="n/x@p"),
        trial("rude", passed=None, outcome="not_confirmed"),
        trial("hedge", passed=None, outcome="no_place"),
        trial("attack_file", passed=True, channel="file"),
        trial(CONTROL, passed=True, language="de"),
        trial(PARAPHRASE, passed=False),
    ]
    table = {(row["who"], row["kind"]): row for row in as_table(rows, MinimumQuality())}

    def counts(who: str, kind: str) -> tuple[int, ...]:
        row = table[who, kind]
        names = ("num_failures", "false_accepts", "num_fine", "true_accepts")
        return tuple(row[name] for name in names)

    assert counts("judge", "all") == (3, 2, 2, 1)
    assert counts("judge, nothing aimed at it", "all") == (2, 1, 2, 1)
    assert counts("judge, aimed at", "all") == (1, 1, 0, 0)
    assert counts("judge, by fault", "rude") == (2, 1, 0, 0)
    assert counts("judge, by control", PARAPHRASE) == (0, 0, 1, 0)
    assert counts("judge, by language", "de") == (1, 1, 1, 1)
    assert counts("judge, by language", "en") == (2, 1, 1, 0)
    assert counts("judge, by model", "n/x") == (1, 1, 0, 0)
    assert table["judge, by fault", "rude"]["fpr_interval"] == wilson(1, 2)
    assert table["judge, by fault", "rude"]["num_named"] == 1
    assert table["judge, by fault", "rude"]["num_not_confirmed"] == 1
    assert table["judge, by fault", "hedge"]["num_no_place"] == 1
    assert table["judge", "all"]["num_attempts"] == 7


def test_failures_with_text_aimed_at_the_judge_stand_apart_from_plain_ones() -> None:
    rows = [trial("rude", passed=False)] * 30
    rows += [trial("attack_file", passed=True, channel="file")] * 5
    table = {row["who"]: row for row in as_table(rows, MinimumQuality()) if row["kind"] == "all"}
    counts = {who: (row["false_accepts"], row["num_failures"]) for who, row in table.items()}
    assert counts == {
        "judge": (5, 35),
        "judge, nothing aimed at it": (0, 30),
        "judge, aimed at": (5, 5),
    }


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 60), st.integers(0, 60))
def test_the_status_is_what_the_minimum_quality_says(fa: int, tr: int, ta: int, fr: int) -> None:
    rates, floor = Rates(fa + tr, fa, ta + fr, ta), MinimumQuality()
    status = judge_status_of(rates, floor)
    low, high = wilson(fa, fa + tr) if fa + tr else (0.0, 1.0)
    fine_low, fine_high = wilson(ta, ta + fr) if ta + fr else (0.0, 1.0)
    if low > floor.max_false_accept or fine_high < floor.min_control_accept:
        assert status == "below_minimum"
    elif fa + tr < floor.min_perturbed or 3 * (ta + fr) < floor.min_perturbed:
        assert status == "unmeasured"
    elif ta < floor.min_control_accept * (ta + fr) or fa > floor.max_false_accept * (fa + tr):
        assert status == "below_minimum"
    elif status != "below_minimum":
        assert rates.kappa is not None
        assert rates.kappa >= floor.min_kappa
        sure = high <= floor.max_false_accept and fine_low >= floor.min_control_accept
        assert (status == "measured") == sure


@pytest.mark.parametrize(
    ("rates", "calibrated"),
    [
        (Rates(25, 0, 24, 24), False),  # 49 labels
        (Rates(25, 0, 25, 25), True),
        (Rates(25, 3, 25, 22), True),  # kappa 0.76, from 0.52 on
        (Rates(25, 5, 25, 21), False),  # kappa 0.64, from 0.38 on
        (Rates(250, 50, 250, 210), True),  # the same agreement, and labels enough to be sure
        (Rates(40, 15, 40, 26), False),  # kappa 0.27
        (Rates(0, 0, 60, 60), False),  # nothing to tell apart
    ],
)
def test_only_agreement_worth_the_word_is_called_calibrated(rates: Rates, calibrated: bool) -> None:
    assert rates.is_calibrated is calibrated


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=80))
def test_the_lower_bound_of_kappa_lies_below_it(outcomes: list[tuple[bool, bool]]) -> None:
    rates = rates_of(outcomes)
    assert (rates.kappa_low is None) == (rates.kappa is None)
    if rates.kappa is not None and rates.kappa_low is not None:
        assert rates.kappa_low <= rates.kappa + 1e-9
