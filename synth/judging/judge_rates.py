"""How good a judge is: its rates on perturbed negatives and on what was fine, and what they decide.

All kinds of failures together decide whether the judge's word counts (`judge_status_of`), by what
it passes of them and by what it rejects of the controls; people's labels only decide whether it may
be called calibrated.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple

from pydantic import Field

from records.config import Config
from records.tables.schemas import Row
from synth.judging.perturbation.planning import PARAPHRASED_SHARE
from synth.judging.perturbation.registry import CONTROL
from synth.render.intervals import wilson

CALIBRATED_AT = 50
"""Criteria that people have labelled, from which on a judge may be called calibrated."""

CALIBRATED_KAPPA = 0.6
"""Least kappa of judge and people for that: substantial agreement, by Landis and Koch (1977)."""

CALIBRATED_KAPPA_LOW = 0.4
"""Least lower bound of its interval (95%)."""

JudgeStatus = Literal["measured", "uncertain", "below_minimum", "unmeasured"]
"""measured: at the minimum quality, and so are the bounds of both rates. uncertain: the rates are,
a bound is not: too few were tried to be sure. below_minimum: a rate is not, or the whole interval
of a rate lies beyond its limit, however few were tried. unmeasured: too few for any rate. Only
below_minimum takes the judge's word away; each is marked on rows."""


class MinimumQuality(Config):
    """What the judge must reach on perturbed negatives for its word to count."""

    RENAMED: ClassVar[dict[str, str]] = {"min_perturbed": "min_plants"}
    ADDED_LATER: ClassVar[Mapping[str, Any]] = MappingProxyType({"min_control_accept": 0.5})

    max_false_accept: float = Field(default=0.2, ge=0.0, le=1.0)
    """Largest share of the perturbed negatives that it may pass. The upper bound of its interval
    (Wilson's, 95%) must not lie above, either, for the judge to be called measured."""
    min_control_accept: float = Field(default=0.5, ge=0.0, le=1.0)
    """Least share of the controls that it must pass; the lower bound of its interval must not lie
    below, either. Every second control is an episode that passes by code whatever the judge said of
    it, so what is truly amiss there lowers the share, too."""
    min_kappa: float = Field(default=0.4, ge=-1.0, le=1.0)
    """Least kappa of its verdicts on perturbed negatives and on controls together."""
    min_perturbed: int = Field(default=10, ge=1)
    """With fewer, or with controls of less than a third of it, the judge is unmeasured: its word
    counts, and is marked so."""


class Rates(NamedTuple):
    """What a checker did on failures and on what was fine. Intervals are Wilson's, at 95%."""

    num_failures: int
    false_accepts: int
    num_fine: int
    true_accepts: int

    @property
    def fpr(self) -> float | None:
        return self.false_accepts / self.num_failures if self.num_failures else None

    @property
    def tpr(self) -> float | None:
        return self.true_accepts / self.num_fine if self.num_fine else None

    @property
    def kappa(self) -> float | None:
        """None where there was only one sort to tell apart."""
        if not self.num_failures or not self.num_fine:
            return None
        return kappa(
            self.true_accepts,
            self.false_accepts,
            self.num_fine - self.true_accepts,
            self.num_failures - self.false_accepts,
        )

    @property
    def kappa_low(self) -> float | None:
        """Kappa at the lower bound of the observed agreement (Wilson's, 95%), with the agreement by
        chance as it is."""
        n = self.num_failures + self.num_fine
        observed = self.true_accepts + self.num_failures - self.false_accepts
        chance = _by_chance(n, self.true_accepts + self.false_accepts, self.num_fine)
        if chance is None or self.kappa is None:
            return None
        low, _ = wilson(observed, n)
        return (low - chance) / (1 - chance)

    @property
    def is_calibrated(self) -> bool:
        """Of a judge against people's labels: enough of them, and agreement worth the word."""
        if self.num_failures + self.num_fine < CALIBRATED_AT:
            return False
        agreed, low = self.kappa, self.kappa_low
        if agreed is None or low is None:
            return False
        return agreed >= CALIBRATED_KAPPA and low >= CALIBRATED_KAPPA_LOW

    def row(self) -> Row:
        return self._asdict() | {
            "fpr": self.fpr,
            "fpr_interval": _interval(self.false_accepts, self.num_failures),
            "tpr": self.tpr,
            "tpr_interval": _interval(self.true_accepts, self.num_fine),
            "kappa": self.kappa,
        }


def _interval(count: int, n: int) -> tuple[float, float] | None:
    return wilson(count, n) if n else None


def kappa(both: int, judge_only: int, code_only: int, neither: int) -> float | None:
    """Cohen's kappa of two raters; None where chance alone explains everything, or nothing is.

    `judge_only`: passed by the judge and not by the code; `code_only` the other way round.
    """
    n = both + judge_only + code_only + neither
    chance = _by_chance(n, both + judge_only, both + code_only)
    return None if chance is None else ((both + neither) / n - chance) / (1 - chance)


def _by_chance(n: int, passed_by_one: int, passed_by_other: int) -> float | None:
    """Agreement by chance of two raters who passed so many of n; None where it explains all."""
    if n == 0:
        return None
    one, other = passed_by_one / n, passed_by_other / n
    chance = one * other + (1 - one) * (1 - other)
    return None if chance >= 1 else chance


def rates_of(outcomes: Iterable[tuple[bool, bool]]) -> Rates:
    """Of pairs (expected to pass, passed)."""
    counts = Counter(outcomes)
    return Rates(
        num_failures=counts[False, True] + counts[False, False],
        false_accepts=counts[False, True],
        num_fine=counts[True, True] + counts[True, False],
        true_accepts=counts[True, True],
    )


def judge_rates(rows: Iterable[Row]) -> Rates:
    """The judge's rates over all kinds of failures, from rows of `calibration` of one trial. What
    was not confirmed has no verdict and counts for nothing."""
    return rates_of((row["expected"], row["judge_passed"]) for row in rows if _has_word(row))


def judge_status_of(rates: Rates, minimum: MinimumQuality) -> JudgeStatus:
    """Whether the judge's word counts."""
    low, high = _bounds(rates.false_accepts, rates.num_failures)
    fine_low, fine_high = _bounds(rates.true_accepts, rates.num_fine)
    most, least = minimum.max_false_accept, minimum.min_control_accept
    if low > most or fine_high < least:
        return "below_minimum"
    enough_fine = rates.num_fine >= minimum.min_perturbed * PARAPHRASED_SHARE
    if rates.num_failures < minimum.min_perturbed or not enough_fine:
        return "unmeasured"
    agreed = rates.kappa
    wrong = rates.false_accepts > most * rates.num_failures
    wrong = wrong or rates.true_accepts < least * rates.num_fine
    if wrong or agreed is None or agreed < minimum.min_kappa:
        return "below_minimum"
    return "measured" if high <= most and fine_low >= least else "uncertain"


def _bounds(count: int, n: int) -> tuple[float, float]:
    """Wilson's interval; everything where there is nothing."""
    return wilson(count, n) if n else (0.0, 1.0)


def warning_of(status: JudgeStatus, rates: Rates) -> str | None:
    """What a run says loudly."""
    did = (
        f"it passed {rates.false_accepts} of {rates.num_failures} perturbed negatives"
        f"{_up_to(rates)} and {rates.true_accepts} of {rates.num_fine} controls"
    )
    if status == "below_minimum":
        return (
            f"THE JUDGE IS BELOW ITS MINIMUM QUALITY: {did}. Nothing is accepted by its word, and "
            "what code alone accepts is left out of exports."
        )
    if status == "uncertain":
        return f"The judge is uncertain: {did}, too few to be certain. Rows are marked."
    if status == "unmeasured":
        return (
            f"The judge is unmeasured ({rates.num_failures} perturbed negatives, "
            f"{rates.num_fine} controls). Rows are marked."
        )
    return None


def _up_to(rates: Rates) -> str:
    low, high = _bounds(rates.false_accepts, rates.num_failures)
    return f" (95% interval {low:.0%} to {high:.0%})" if rates.num_failures else ""


def as_table(rows: Sequence[Row], minimum: MinimumQuality) -> list[Row]:
    """The rates that a run publishes: over everything, then without and with text aimed at the
    judge, by fault, by sort of control, by language and by model. Only the first line decides the
    judge status."""
    rows = [row for row in rows if row["perturbation"] != CONTROL or _has_word(row)]  # no ties
    if not rows:
        return []
    status = judge_status_of(judge_rates(rows), minimum)
    table = [_line("judge", "all", rows) | {"judge_status": status}]
    aimed = [row for row in rows if row["channel"] is not None]
    if aimed:
        plain = [row for row in rows if row["channel"] is None]
        table.append(_line("judge, nothing aimed at it", "all", plain))
        table.append(_line("judge, aimed at", "all", aimed))
    table += _lines("judge, by fault", (row for row in rows if not row["expected"]), _sort_of)
    table += _lines("judge, by control", (row for row in rows if row["expected"]), _sort_of)
    table += _lines("judge, by language", rows, _language_of)
    decided = filter(_has_word, rows)
    return table + _lines("judge, by model", decided, _model_of)


def _has_word(row: Row) -> bool:
    return row["judge_passed"] is not None


def _sort_of(row: Row) -> str:
    return row["perturbation"]


def _language_of(row: Row) -> str:
    return row["language"] or "other"


def _model_of(row: Row) -> str:
    return row["checker_version"].rpartition("@")[0]


def _lines(who: str, rows: Iterable[Row], of: Callable[[Row], str]) -> list[Row]:
    """One for each value that rows have, sorted."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(of(row), []).append(row)
    return [_line(who, name, own) for name, own in sorted(groups.items())]


def _line(who: str, kind: str, rows: Iterable[Row]) -> Row:
    """`num_attempts`: all that was asked for; of it so many were confirmed by code and by a second
    reading, and the rest tried no judge: the writer found no place, wrote nothing that fits, or
    nothing confirmed it. `num_named`: perturbed negatives that were rejected by the words that are
    wrong in them."""
    rows = list(rows)
    outcomes = Counter(row["outcome"] for row in rows)
    confirmed = Counter(row["confirmed_by"] for row in rows if row["outcome"] == "tried")
    return (
        {"who": who, "kind": kind, "judge_status": None}
        | judge_rates(rows).row()
        | {
            "num_named": sum(bool(row["named"]) for row in rows),
            "num_attempts": len(rows),
            "num_by_code": confirmed["code"],
            "num_by_second_reading": confirmed["second_reading"],
            "num_no_place": outcomes["no_place"],
            "num_not_written": outcomes["not_written"],
            "num_not_confirmed": outcomes["not_confirmed"],
        }
    )
