"""The judge on trial: what it says of perturbed negatives and of the same episodes untouched.

Each grading is tried by itself, on a sample of its own trajectories that passed by code. What the
rates decide stands in `synth.judging.judge_rates`.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from pydantic import Field

from records.config import Config
from records.digest import digest
from records.tables.schemas import Row
from synth.engine.stages import Item, ItemResult, dropped
from synth.judging.grading import UNSUPPORTED_CLAIMS, judge_version
from synth.judging.judge import judge
from synth.judging.judge_rates import MinimumQuality
from synth.judging.perturbation.episodes import PassedEpisode
from synth.judging.perturbation.registry import (
    ATTACKS,
    BY_CODE,
    BY_WORDS,
    PERTURBATIONS_VERSION,
    PerturbedNegative,
    claims_undone_work,
    code_says,
    perturb,
)
from synth.llm.client import LLM
from synth.llm.settings.config import RoleConfig
from synth.rubrics.built_in import Kinds
from synth.rubrics.patch import RubricPatch
from synth.rubrics.unsupported_claims import CHECK_VERSION as UNSUPPORTED_CLAIMS_VERSION

STAGE = "calibration"
STAGE_VERSION = 1
"""Raised when the same sample would be tried otherwise."""

CONTROL = "control"
"""The `perturbation` of an episode that was left as it is."""


class JudgingConfig(Config):
    RENAMED: ClassVar[dict[str, str]] = {
        "perturbed_share": "plant_share",
        "minimum_quality": "floor",
    }

    perturbed_share: float = Field(default=0.2, ge=0.0, le=1.0)
    """Perturbed negatives that the judge is tried with, as a share of the graded trajectories; each
    is one more request. With 0 the judge's kinds are unmeasured."""
    max_of_one: int = Field(default=40, ge=1, le=10_000)
    """Perturbed negatives of one failure, such as wrong_argument, at most."""
    minimum_quality: MinimumQuality = MinimumQuality()
    """What the judge must reach on perturbed negatives for its word to count."""
    rubric: RubricPatch | None = None
    """What to judge by instead of the rubrics that the tasks were made with."""


_GROUPS: tuple[tuple[tuple[str, ...], int], ...] = (
    (tuple(BY_WORDS), 2),
    (tuple(BY_CODE), 2),
    (ATTACKS, 1),
)
"""Failures, and how many parts of the negatives they get."""


def sample(passed: Iterable[str], *, graded: int, seed: int, config: JudgingConfig) -> list[str]:
    """The trajectories to perturb, in order: the same ones whoever judges."""
    num = num_perturbed(graded, config)
    return sorted(passed, key=lambda i: digest(STAGE, seed, i))[:num]


def num_perturbed(graded: int, config: JudgingConfig) -> int:
    """Perturbed negatives to make where so many trajectories were graded."""
    names = len(BY_CODE) + len(BY_WORDS) + len(ATTACKS)
    return min(math.ceil(graded * config.perturbed_share), names * config.max_of_one)


def plan_calibration(
    sources: Sequence[PassedEpisode],
    *,
    grading_id: str,
    graded: int,
    config: JudgingConfig,
    kinds: Kinds,
) -> list[Item]:
    """One item for each perturbed negative, and one for each source as a control, in the order of
    `sources`.

    A source gets one perturbation, of the failures that have fewest; it gets further ones where
    there are too few sources. Negatives that code does not confirm are items, too, so that they are
    counted.
    """
    counts: Counter[str] = Counter()
    tried: set[tuple[int, str]] = set()
    items: list[Item] = []
    used: dict[int, None] = {}
    wanted = num_perturbed(graded, config)
    for _ in range(len(BY_CODE) + len(BY_WORDS) + len(ATTACKS)):
        for number, source in enumerate(sources):
            if sum(counts.values()) >= wanted:
                break
            for name in _by_need(counts, config):
                if (number, name) in tried:
                    continue
                tried.add((number, name))
                negative = perturb(name, source)
                if negative is None:
                    continue
                confirmed = code_says(negative, source, kinds) is not None
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


def _item(grading_id: str, source: PassedEpisode, name: str, *, confirmed: bool) -> Item:
    trajectory_id = source.trajectory["trajectory_id"]
    return Item(
        digest(STAGE, STAGE_VERSION, PERTURBATIONS_VERSION, grading_id, trajectory_id, name),
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
    source: PassedEpisode,
    *,
    verdicts: Iterable[Row],
    judge_role: RoleConfig,
    kinds: Kinds,
) -> ItemResult:
    """Rows of `calibration` for one perturbed negative or control. A control costs nothing: it was
    judged in this grading, whose `verdicts` on the trajectory are given."""
    place = {
        "grading_id": item.data["grading_id"],
        "trajectory_id": item.data["trajectory_id"],
        "perturbation": item.data["plant"],
        "split": source.trajectory["split"],
    }
    if item.data["plant"] == CONTROL:
        return ItemResult({STAGE: [place | row for row in _control_rows(verdicts)]})
    negative = perturb(item.data["plant"], source)
    said = code_says(negative, source, kinds) if negative else None
    if negative is None or said is None:
        return dropped("not_confirmed")
    opinions = await judge(llm, source.rubric, negative.messages, item=item.item_id)
    opinion = opinions[negative.criterion.id]
    row = _row(
        negative.criterion.id, negative.criterion.kind, judge_version(judge_role, item.item_id)
    )
    row |= {
        "channel": negative.channel,
        "expected": False,
        "code_passed": said.passed,
        "judge_passed": opinion.passed,
        "supported": opinion.supported,
        "evidence": opinion.evidence,
        "quote": opinion.quote,
        "detail": negative.detail,
    }
    rows = [place | row]
    if claims_undone_work(negative.perturbation):
        rows.append(place | _claims_row(expected=False, honest=said.honest, negative=negative))
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


def _claims_row(*, expected: bool, honest: bool, negative: PerturbedNegative | None = None) -> Row:
    row = _row(UNSUPPORTED_CLAIMS, UNSUPPORTED_CLAIMS, UNSUPPORTED_CLAIMS_VERSION)
    detail = negative.detail if negative else None
    return row | {"expected": expected, "code_passed": honest, "detail": detail}


def _control_rows(verdicts: Iterable[Row]) -> list[Row]:
    by_code: dict[str, bool] = {}
    by_judge: list[Row] = []
    for verdict in verdicts:
        if verdict["checked_by"] == "judge":
            by_judge.append(verdict)
        else:
            by_code[verdict["criterion_id"]] = verdict["passed"]
    rows = [_claims_row(expected=True, honest=by_code.get(UNSUPPORTED_CLAIMS, True))]
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
