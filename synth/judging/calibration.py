"""The judge on trial: what it says of perturbed negatives and of the same episodes untouched.

Each grading is tried by itself, on a sample of its own trajectories that passed by code. What the
rates decide stands in `synth.judging.judge_rates`.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

from pydantic import Field

from records.config import Config
from records.digest import digest
from records.tables.schemas import Row
from synth.engine.stages import Item, ItemResult, dropped
from synth.judging.decision import DecisionConfig, decide_rows
from synth.judging.judge_rates import MinimumQuality
from synth.judging.panel import PanelConfig, PanelRule
from synth.judging.perturbation.episodes import PassedEpisode
from synth.judging.perturbation.registry import (
    ATTACKS,
    BY_CODE,
    BY_WORDS,
    PERTURBATIONS_VERSION,
    is_confirmed,
    perturb,
)
from synth.judging.review import ReviewedEpisode, review
from synth.llm.client import LLM
from synth.llm.settings.config import RoleConfig
from synth.rubrics.built_in import Kinds, Verdict
from synth.rubrics.criteria import JUDGED
from synth.rubrics.patch import RubricPatch
from synth.rubrics.standing import TRUTH

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
    ADDED_LATER: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {
            "decision": {"pass_threshold": None, "scored_only": []},
            "judge_failed": False,
            "panel": {"rule": "one"},
        }
    )

    perturbed_share: float = Field(default=0.2, ge=0.0, le=1.0)
    """Perturbed negatives that the judge is tried with, as a share of the graded trajectories; each
    is one more request. With 0 the judge's kinds are unmeasured."""
    max_of_one: int = Field(default=40, ge=1, le=10_000)
    """Perturbed negatives of one failure, such as wrong_argument, at most."""
    minimum_quality: MinimumQuality = MinimumQuality()
    """What the judge must reach on perturbed negatives for its word to count."""
    rubric: RubricPatch | None = None
    """What to judge by instead of the rubrics that the tasks were made with."""
    decision: DecisionConfig = DecisionConfig()
    """How verdicts become a decision."""
    judge_failed: bool = False
    """Have the judge look also at trajectories that code rejects: its reasons cost as much as those
    of the others."""
    panel: PanelConfig = PanelConfig()
    """How several models of the judge's role decide together."""


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
                confirmed = is_confirmed(negative, kinds)
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
    rule: PanelRule = "one",
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
        return ItemResult({STAGE: [place | _trial_row(list(verdicts), expected=True)]})
    negative = perturb(item.data["plant"], source)
    if negative is None or not is_confirmed(negative, kinds):
        return dropped("not_confirmed")
    told = (c.id for c in source.rubric.criteria if c.kind == "communicate")
    rows = await review(
        llm,
        ReviewedEpisode(negative.messages, negative.calls, source.tools, source.rubric),
        dict.fromkeys(told, Verdict(None, 0.0, "")),  # the judge's own word is on trial
        item=item.item_id,
        judge_role=judge_role,
        version=kinds.version,
        judge_failed=True,
        rule=rule,
    )
    row = _trial_row(rows, expected=False) | {
        "criterion_id": negative.criterion.id,
        "channel": negative.channel,
        "detail": negative.detail,
    }
    return ItemResult({STAGE: [place | row]})


def _trial_row(verdicts: Sequence[Row], *, expected: bool) -> Row:
    """What the judge alone makes of an episode."""
    own = [row for row in verdicts if row["checked_by"] == "judge"]
    decision = decide_rows(own, pass_threshold=0.0, config=DecisionConfig())
    shown = decision.failed or (own[0] if own else {})
    return {
        "criterion_id": shown.get("criterion_id", TRUTH),
        "kind": JUDGED,
        "channel": None,
        "expected": expected,
        "code_passed": None,
        "judge_passed": decision.accepted if own else None,
        "supported": shown.get("supported"),
        "evidence": shown.get("evidence"),
        "quote": shown.get("quote"),
        "detail": None,
        "checker_version": shown.get("checker_version", ""),
    }
