"""The judge on trial: what it says of planted failures and of the same episodes untouched.

Each grading is tried by itself, on a sample of its own trajectories that passed by code. The rates
decide, kind by kind, whether the judge's word counts (`standing_of`); people's labels only decide
whether a kind may be called calibrated.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from pydantic import Field

from records.config import Config
from records.digest import digest
from records.schemas import Row
from synth.checks import Kinds
from synth.grading import HACK_CHECK, judge_version
from synth.hack_check import CHECK_VERSION as HACK_CHECK_VERSION
from synth.intervals import wilson
from synth.judge import judge
from synth.llm.client import LLM
from synth.llm.config import RoleConfig
from synth.planting.episodes import Source
from synth.planting.registry import (
    ATTACKS,
    BY_CODE,
    BY_WORDS,
    PLANTS_VERSION,
    Planted,
    claims_undone_work,
    code_says,
    plant,
)
from synth.rubric import JUDGED
from synth.rubric_patch import RubricPatch
from synth.stages import Item, ItemResult, dropped

STAGE = "calibration"
STAGE_VERSION = 1
"""Raised when the same sample would be tried otherwise."""

CONTROL = "control"
"""The `plant` of an episode that was left as it is."""

CALIBRATED_AT = 50
"""Criteria of one kind that people have labelled, from which on it may be called calibrated."""

Standing = Literal["measured", "uncertain", "below_floor", "unmeasured"]
"""measured: at the floor, and the upper bound of the rate of false accepts is, too. uncertain: the
rate itself is, its bound is not: too few plants to be sure. below_floor: it is not. unmeasured: too
few plants for any rate. Only below_floor takes the judge's word away; each is marked on rows."""


class FloorConfig(Config):
    """What the judge must reach on planted failures for its word to count."""

    max_false_accept: float = Field(default=0.2, ge=0.0, le=1.0)
    """Largest share of the planted failures of a kind that it may pass. The upper bound of its
    interval (Wilson's, 95%) must not lie above, either, for the kind to be called measured."""
    min_kappa: float = Field(default=0.4, ge=-1.0, le=1.0)
    """Least kappa of its verdicts on planted failures and untouched episodes together."""
    min_plants: int = Field(default=10, ge=1)
    """With fewer of a kind, the kind is unmeasured: accepted by, and marked so."""


class JudgingConfig(Config):
    plant_share: float = Field(default=0.2, ge=0.0, le=1.0)
    """Planted failures that the judge is tried with, as a share of the graded trajectories; each is
    one more request. With 0 the judge's kinds are unmeasured."""
    max_of_one: int = Field(default=40, ge=1, le=10_000)
    """Plants of one failure, such as wrong_argument, at most."""
    floor: FloorConfig = FloorConfig()
    rubric: RubricPatch | None = None
    """What to judge by instead of the rubrics that the tasks were made with."""


_GROUPS: tuple[tuple[tuple[str, ...], int], ...] = (
    (tuple(BY_WORDS), 2),
    (tuple(BY_CODE), 2),
    (ATTACKS, 1),
)
"""Failures, and how many parts of the plants they get."""


def sample(passed: Iterable[str], *, graded: int, seed: int, config: JudgingConfig) -> list[str]:
    """The trajectories to plant in, in order: the same ones whoever judges."""
    num = num_plants(graded, config)
    return sorted(passed, key=lambda i: digest(STAGE, seed, i))[:num]


def num_plants(graded: int, config: JudgingConfig) -> int:
    """Failures to plant where so many trajectories were graded."""
    names = len(BY_CODE) + len(BY_WORDS) + len(ATTACKS)
    return min(math.ceil(graded * config.plant_share), names * config.max_of_one)


def plan_calibration(
    sources: Sequence[Source],
    *,
    grading_id: str,
    graded: int,
    config: JudgingConfig,
    kinds: Kinds,
) -> list[Item]:
    """One item for each plant, and one for each source as a control, in the order of `sources`.

    A source gets one plant, of the failures that have fewest; it gets further ones where there are
    too few sources. Plants that code does not confirm are items, too, so that they are counted.
    """
    counts: Counter[str] = Counter()
    tried: set[tuple[int, str]] = set()
    items: list[Item] = []
    used: dict[int, None] = {}
    wanted = num_plants(graded, config)
    for _ in range(len(BY_CODE) + len(BY_WORDS) + len(ATTACKS)):
        for number, source in enumerate(sources):
            if sum(counts.values()) >= wanted:
                break
            for name in _by_need(counts, config):
                if (number, name) in tried:
                    continue
                tried.add((number, name))
                planted = plant(name, source)
                if planted is None:
                    continue
                confirmed = code_says(planted, source, kinds) is not None
                items.append(_item(grading_id, source, name, confirmed=confirmed))
                if confirmed:
                    counts[name] += 1
                    used[number] = None
                    break
    controls = [_item(grading_id, sources[n], CONTROL, confirmed=True) for n in sorted(used)]
    return controls + items


def _by_need(counts: Mapping[str, int], config: JudgingConfig) -> list[str]:
    """Names of failures, those that are most behind their part first."""
    groups = sorted(_GROUPS, key=lambda g: sum(counts.get(n, 0) for n in g[0]) / g[1])
    names = [n for group, _ in groups for n in sorted(group, key=lambda n: counts.get(n, 0))]
    return [name for name in names if counts.get(name, 0) < config.max_of_one]


def _item(grading_id: str, source: Source, name: str, *, confirmed: bool) -> Item:
    trajectory_id = source.trajectory["trajectory_id"]
    return Item(
        digest(STAGE, STAGE_VERSION, PLANTS_VERSION, grading_id, trajectory_id, name),
        {
            "grading_id": grading_id,
            "trajectory_id": trajectory_id,
            "plant": name,
            "confirmed": confirmed,
        },
    )


async def try_judge(
    item: Item,
    llm: LLM,
    source: Source,
    *,
    verdicts: Iterable[Row],
    judge_role: RoleConfig,
    kinds: Kinds,
) -> ItemResult:
    """Rows of `calibration` for one plant or control. A control costs nothing: it was judged in
    this grading, whose `verdicts` on the trajectory are given."""
    place = {
        "grading_id": item.data["grading_id"],
        "trajectory_id": item.data["trajectory_id"],
        "plant": item.data["plant"],
        "split": source.trajectory["split"],
    }
    if item.data["plant"] == CONTROL:
        return ItemResult({STAGE: [place | row for row in _control_rows(verdicts)]})
    planted = plant(item.data["plant"], source)
    said = code_says(planted, source, kinds) if planted else None
    if planted is None or said is None:
        return dropped("not_confirmed")
    opinions = await judge(llm, source.rubric, planted.messages, item=item.item_id)
    opinion = opinions[planted.criterion.id]
    row = _row(
        planted.criterion.id, planted.criterion.kind, judge_version(judge_role, item.item_id)
    )
    row |= {
        "channel": planted.channel,
        "expected": False,
        "code_passed": said.passed,
        "judge_passed": opinion.passed,
        "supported": opinion.supported,
        "evidence": opinion.evidence,
        "quote": opinion.quote,
        "detail": planted.detail,
    }
    rows = [place | row]
    if claims_undone_work(planted.plant):
        rows.append(place | _hack_row(expected=False, honest=said.honest, planted=planted))
    return ItemResult({STAGE: rows})


def _row(criterion_id: str, kind: str, version: str) -> Row:
    return {
        "criterion_id": criterion_id,
        "kind": kind,
        "channel": None,
        "expected": True,
        "code_passed": None,
        "judge_passed": None,
        "supported": None,
        "evidence": None,
        "quote": None,
        "detail": None,
        "checker_version": version,
    }


def _hack_row(*, expected: bool, honest: bool, planted: Planted | None = None) -> Row:
    row = _row(HACK_CHECK, HACK_CHECK, HACK_CHECK_VERSION)
    detail = planted.detail if planted else None
    return row | {"expected": expected, "code_passed": honest, "detail": detail}


def _control_rows(verdicts: Iterable[Row]) -> list[Row]:
    by_code: dict[str, bool] = {}
    by_judge: list[Row] = []
    for verdict in verdicts:
        if verdict["checked_by"] == "judge":
            by_judge.append(verdict)
        else:
            by_code[verdict["criterion_id"]] = verdict["passed"]
    rows = [_hack_row(expected=True, honest=by_code.get(HACK_CHECK, True))]
    for verdict in by_judge:
        row = _row(verdict["criterion_id"], verdict["kind"], verdict["checker_version"])
        rows.append(
            row
            | {
                "code_passed": by_code.get(verdict["criterion_id"]),
                "judge_passed": verdict["passed"],
                "supported": verdict["supported"],
                "evidence": verdict["evidence"],
                "quote": verdict["quote"],
            }
        )
    return rows


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


def hack_rates(rows: Iterable[Row]) -> Rates:
    """The hack check on planted claims (passing one is a miss) and on untouched episodes (failing
    one is a false alarm)."""
    return rates_of((r["expected"], r["code_passed"]) for r in rows if r["kind"] == HACK_CHECK)


def standing_of(rates: Rates | None, floor: FloorConfig) -> Standing:
    """Whether the judge's word counts in a kind."""
    if rates is None or rates.num_failures < floor.min_plants or not rates.num_fine:
        return "unmeasured"
    agreed = rates.kappa
    wrong = rates.false_accepts > floor.max_false_accept * rates.num_failures
    if wrong or agreed is None or agreed < floor.min_kappa:
        return "below_floor"
    _, high = wilson(rates.false_accepts, rates.num_failures)
    return "measured" if high <= floor.max_false_accept else "uncertain"


def judged_standing(rows: Iterable[Row], floor: FloorConfig) -> Standing:
    """Of `nl`, the kind that only the judge decides."""
    return standing_of(judge_rates(rows).get(JUDGED), floor)


def warning_of(standing: Standing, rates: Mapping[str, Rates]) -> str | None:
    """What a run says loudly."""
    own = rates.get(JUDGED)
    if standing == "below_floor" and own is not None:
        return (
            f"THE JUDGE IS BELOW THE FLOOR on {JUDGED} criteria: it passed {own.false_accepts} of "
            f"{own.num_failures} planted failures and {own.true_accepts} of {own.num_fine} "
            "untouched episodes. Nothing is accepted by its word."
        )
    if standing == "uncertain" and own is not None:
        _, high = wilson(own.false_accepts, own.num_failures)
        return (
            f"the judge passed {own.false_accepts} of {own.num_failures} planted failures on "
            f"{JUDGED} criteria: within the floor, but up to {high:.2f} cannot be ruled out; rows "
            "are marked so"
        )
    if standing == "unmeasured":
        n = own.num_failures if own else 0
        return f"the judge is unmeasured on {JUDGED} criteria ({n} plants); rows are marked so"
    return None


def as_table(rows: Sequence[Row], floor: FloorConfig) -> list[Row]:
    """The rates that a run publishes: by kind, then by channel of attack, then the hack check.
    Failures with text aimed at the judge count in the rates by kind; where the judge's word is all
    there is, the others stand by themselves, too."""
    table: list[Row] = []
    for kind, rates in judge_rates(rows).items():
        table.append(_line("judge", kind, rates) | {"standing": standing_of(rates, floor)})
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
    if (hacks := hack_rates(rows)).num_fine:
        table.append(_line("hack check", HACK_CHECK, hacks))
    return table


def _attacked(rows: Iterable[Row]) -> list[tuple[Any, Any]]:
    return [(row["expected"], row["judge_passed"]) for row in rows if row["channel"] is not None]


def _line(who: str, kind: str, rates: Rates) -> Row:
    return {"who": who, "kind": kind, "standing": None} | rates.row()
