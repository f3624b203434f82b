"""How good a judge is: its rates on perturbed negatives and on what was fine, and what they decide.

Kind by kind, whether the judge's word counts (`judge_status_of`); people's labels only decide
whether a kind may be called calibrated.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

from pydantic import Field

from records.config import Config
from records.tables.schemas import Row
from synth.render.intervals import wilson
from synth.rubrics.criteria import JUDGED

CALIBRATED_AT = 50
"""Criteria of one kind that people have labelled, from which on it may be called calibrated."""

JudgeStatus = Literal["measured", "uncertain", "below_minimum", "unmeasured"]
"""measured: at the minimum quality, and the upper bound of the rate of false accepts is, too.
uncertain: the rate itself is, its bound is not: too few negatives to be sure. below_minimum: it is
not. unmeasured: too few negatives for any rate. Only below_minimum takes the judge's word away;
each is marked on rows."""


class MinimumQuality(Config):
    """What the judge must reach on perturbed negatives for its word to count."""

    RENAMED: ClassVar[dict[str, str]] = {"min_perturbed": "min_plants"}

    max_false_accept: float = Field(default=0.2, ge=0.0, le=1.0)
    """Largest share of the perturbed negatives of a kind that it may pass. The upper bound of its
    interval (Wilson's, 95%) must not lie above, either, for the kind to be called measured."""
    min_kappa: float = Field(default=0.4, ge=-1.0, le=1.0)
    """Least kappa of its verdicts on perturbed negatives and untouched episodes together."""
    min_perturbed: int = Field(default=10, ge=1)
    """With fewer of a kind, the kind is unmeasured: accepted by, and marked so."""


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
    if n == 0:
        return None
    observed = (both + neither) / n
    judged, code = (both + judge_only) / n, (both + code_only) / n
    chance = judged * code + (1 - judged) * (1 - code)
    return None if chance >= 1 else (observed - chance) / (1 - chance)


def rates_of(outcomes: Iterable[tuple[bool, bool]]) -> Rates:
    """Of pairs (expected to pass, passed)."""
    counts = Counter(outcomes)
    return Rates(
        num_failures=counts[False, True] + counts[False, False],
        false_accepts=counts[False, True],
        num_fine=counts[True, True] + counts[True, False],
        true_accepts=counts[True, True],
    )


def judge_rates(rows: Iterable[Row]) -> dict[str, Rates]:
    """The judge's rates by kind of criterion, from rows of `calibration` of one grading."""
    outcomes: dict[str, list[tuple[bool, bool]]] = {}
    for row in rows:
        if row["judge_passed"] is not None:
            outcomes.setdefault(row["kind"], []).append((row["expected"], row["judge_passed"]))
    return {kind: rates_of(pairs) for kind, pairs in sorted(outcomes.items())}


def attack_rates(rows: Iterable[Row]) -> dict[str, Rates]:
    """The judge on failures with text aimed at it, by where the text stands."""
    outcomes: dict[str, list[tuple[bool, bool]]] = {}
    for row in rows:
        if row["channel"] is not None:
            outcomes.setdefault(row["channel"], []).append((row["expected"], row["judge_passed"]))
    return {channel: rates_of(pairs) for channel, pairs in sorted(outcomes.items())}


def judge_status_of(rates: Rates | None, minimum: MinimumQuality) -> JudgeStatus:
    """Whether the judge's word counts in a kind."""
    if rates is None or rates.num_failures < minimum.min_perturbed or not rates.num_fine:
        return "unmeasured"
    agreed = rates.kappa
    wrong = rates.false_accepts > minimum.max_false_accept * rates.num_failures
    if wrong or agreed is None or agreed < minimum.min_kappa:
        return "below_minimum"
    _, high = wilson(rates.false_accepts, rates.num_failures)
    return "measured" if high <= minimum.max_false_accept else "uncertain"


def status_on_judged(rows: Iterable[Row], minimum: MinimumQuality) -> JudgeStatus:
    """Of `nl`, the kind that only the judge decides."""
    return judge_status_of(judge_rates(rows).get(JUDGED), minimum)


def warning_of(status: JudgeStatus, rates: Mapping[str, Rates]) -> str | None:
    """What a run says loudly."""
    own = rates.get(JUDGED)
    if status == "below_minimum" and own is not None:
        return (
            f"THE JUDGE IS BELOW ITS MINIMUM QUALITY on {JUDGED} criteria: "
            f"it passed {own.false_accepts} of "
            f"{own.num_failures} perturbed negatives and {own.true_accepts} of {own.num_fine} "
            "untouched episodes. Nothing is accepted by its word."
        )
    if status == "uncertain" and own is not None:
        _, high = wilson(own.false_accepts, own.num_failures)
        return (
            f"judge false-accept rate on {JUDGED} criteria {own.false_accepts}/{own.num_failures} "
            f"(95% interval up to {high:.0%}): not certain to be good enough, rows are marked"
        )
    if status == "unmeasured":
        n = own.num_failures if own else 0
        return f"the judge is unmeasured on {JUDGED} criteria ({n} negatives): rows are marked"
    return None


def as_table(rows: Sequence[Row], minimum: MinimumQuality) -> list[Row]:
    """The rates that a run publishes: by kind, then by channel of attack. Failures with text aimed
    at the judge count in the rates by kind; where the judge's word is all there is, the others
    stand by themselves, too."""
    table: list[Row] = []
    for kind, rates in judge_rates(rows).items():
        table.append(
            _line("judge", kind, rates) | {"judge_status": judge_status_of(rates, minimum)}
        )
        aimed = rates_of(_attacked(row for row in rows if row["kind"] == kind))
        if kind == JUDGED and aimed.num_failures:
            plain = rates_of(
                (row["expected"], row["judge_passed"])
                for row in rows
                if (row["kind"], row["channel"]) == (kind, None)
            )
            table.append(_line("judge, nothing aimed at it", kind, plain))
            table.append(_line("judge, aimed at", kind, aimed))
    for channel, rates in attack_rates(rows).items():
        table.append(_line("judge, aimed at", channel, rates))
    if (attacks := rates_of(_attacked(rows))).num_failures:
        table.append(_line("judge, aimed at", "all", attacks))
    return table


def _attacked(rows: Iterable[Row]) -> list[tuple[Any, Any]]:
    return [(row["expected"], row["judge_passed"]) for row in rows if row["channel"] is not None]


def _line(who: str, kind: str, rates: Rates) -> Row:
    return {"who": who, "kind": kind, "judge_status": None} | rates.row()
