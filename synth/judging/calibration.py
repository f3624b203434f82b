"""The judge on trial: what it says of perturbed negatives and of paraphrases of episodes that pass
every check by code.

A trial belongs to a judge, its prompt and the version of the checks, not to one grading: whatever
was tried with the three counts for the next grading with them. What the rates decide stands in
`synth.judging.judge_rates`, how a negative is made and confirmed in `synth.judging.negatives`, and
which are tried in `synth.judging.perturbation.planning`.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

from pydantic import Field

from records.config import Config
from records.digest import digest
from records.store.dataset import ItemStatus
from records.tables.schemas import Row
from synth.engine.stages import Item, ItemResult, dropped
from synth.judging.decision import DecisionConfig, decide_rows
from synth.judging.judge import TRUE_FINDINGS, JudgeQuestions, prompt_version
from synth.judging.judge_rates import MinimumQuality
from synth.judging.negatives import Attempt, Attempts, Tried
from synth.judging.panel import PanelConfig, PanelRule, ask_panel, judge_identity
from synth.judging.perturbation.edited_words import EditedWords
from synth.judging.perturbation.episodes import PassedEpisode, reported_in, said_in
from synth.judging.perturbation.planning import Pair, TriedBefore, pairs_to_try
from synth.judging.perturbation.registry import (
    CONTROL,
    PARAPHRASE,
    PERTURBATIONS,
    PERTURBATIONS_VERSION,
)
from synth.judging.perturbation.writing import PROMPTS
from synth.judging.review import code_rows, criteria_left, panel_rows
from synth.llm.client import LLM
from synth.llm.settings.config import RoleConfig
from synth.prompts.templates import version_of
from synth.rubrics.built_in import Kinds, Verdict
from synth.rubrics.criteria import JUDGED
from synth.rubrics.patch import RubricPatch
from synth.rubrics.reading.locales import language_of
from synth.rubrics.standing import STANDING_VERSION, TRUTH, standing_for
from synth.rubrics.statements.statements import STATEMENTS_VERSION, statements_of

STAGE = "calibration"
STAGE_VERSION = 4
"""Raised when the same episode would be tried otherwise."""

NO_PLACE_BY_CODE = "no_place_by_code"
"""Why an item is dropped of which nobody was asked anything: no row tells of it."""


class JudgingConfig(Config):
    RENAMED: ClassVar[dict[str, str]] = {
        "perturbed_share": "plant_share",
        "minimum_quality": "floor",
    }
    ADDED_LATER: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {
            "decision": {"pass_threshold": None, "scored_only": []},
            "judge_failed": False,
            "ask_cause": True,
            "panel": {"rule": "one"},
        }
    )

    perturbed_share: float = Field(default=0.2, ge=0.0, le=1.0)
    """Confirmed perturbed negatives that the judge is tried with, as a share of the graded
    trajectories; each is one request to the judge and two to the generator, and up to three
    attempts where episodes have no place for a fault or nothing confirms it. With 0 the judge is
    unmeasured."""
    max_of_one: int = Field(default=40, ge=1, le=10_000)
    """Perturbed negatives of one failure, such as wrong_value, at most."""
    minimum_quality: MinimumQuality = MinimumQuality()
    """What the judge must reach on perturbed negatives for its word to count."""
    rubric: RubricPatch | None = None
    """What to judge by instead of the rubrics that the tasks were made with."""
    decision: DecisionConfig = DecisionConfig()
    """How verdicts become a decision."""
    judge_failed: bool = False
    """Have the judge look also at trajectories that code rejects: its reasons cost as much as those
    of the others."""
    ask_cause: bool = True
    """Ask the judge what a failure goes back to where code rejects what was done or told, and the
    user or the task may be why: one short request, without which nobody is named. It rejects
    nothing."""
    panel: PanelConfig = PanelConfig()
    """How several models of the judge's role decide together."""


def trial_id_of(judge_role: RoleConfig, kinds: Kinds, config: JudgingConfig) -> str:
    """What results of a trial belong to: the judge with its settings, or the panel, its
    prompt, the checks, and what of the rubrics decides."""
    rubric, panel, scored_only = config.rubric, config.panel, config.decision.scored_only
    return digest(
        STAGE,
        STAGE_VERSION,
        PERTURBATIONS_VERSION,
        judge_identity(judge_role),
        prompt_version(),
        kinds.version,
        STANDING_VERSION,
        STATEMENTS_VERSION,
        *([panel.identity()] if panel != PanelConfig() else []),
        *([rubric.identity()] if rubric else []),
        *([{"scored_only": sorted(scored_only)}] if scored_only else []),
    )


def num_perturbed(graded: int, config: JudgingConfig) -> int:
    """Perturbed negatives to make where so many trajectories were graded."""
    most = len(PERTURBATIONS) * config.max_of_one
    return min(math.ceil(graded * config.perturbed_share), most)


def checks_version(kinds: Kinds) -> str:
    """Of the perturbations, and of the checks by code that confirm them."""
    return digest(STAGE, PERTURBATIONS_VERSION, kinds.version, STATEMENTS_VERSION)


def writer_version(generator: RoleConfig) -> str:
    """Of whoever writes and reads a second time, with its prompts. A writer who wrote nothing that
    was confirmed is not asked again; another one is."""
    return digest(STAGE, judge_identity(generator), *map(version_of, PROMPTS))


def tried_before(
    rows: Iterable[Row],
    *,
    trial_id: str,
    writer: str,
    done: Collection[str],
) -> TriedBefore:
    """From rows of `calibration` and from the ids of items that were made."""
    own = [r for r in rows if r["trial_id"] == trial_id and r["perturbation"] != CONTROL]
    pairs = [Pair(r["trajectory_id"], r["perturbation"]) for r in own]
    told = list(zip(own, pairs, strict=True))
    confirmed = {pair for row, pair in told if row["outcome"] == "tried"}
    vain = {pair for row, pair in told if row["writer_version"] == writer} - confirmed
    return TriedBefore(confirmed, vain, lambda pair: _item(trial_id, pair, writer).item_id in done)


def plan_calibration(
    accepted: Collection[str],
    sound: Collection[str],
    before: TriedBefore,
    *,
    grading_id: str,
    trial_id: str,
    writer: str,
    graded: int,
    config: JudgingConfig,
) -> list[Item]:
    """Items for perturbed negatives and for paraphrases as controls: those of this writer that were
    tried and those that are missing, so a trial that was broken off goes on with the same items.
    `sound`: trajectories that pass by code and were judged; `accepted`: those that the judge
    accepts."""
    wanted = num_perturbed(graded, config)
    fresh = pairs_to_try(accepted, sound, before, wanted=wanted, most_of_one=config.max_of_one)
    if not (fresh or (wanted and (before.confirmed or before.in_vain))):
        return []
    tried = sorted(p for p in (*before.confirmed, *before.in_vain) if before.is_closed(p))
    mine = (pair for pair in tried if pair.trajectory_id in sound)
    # its row ties the grading to a trial of which every other row may be an earlier grading's
    tie = [_item(grading_id, Pair(i, CONTROL), "") for i in sorted(sound)[:1]]
    return [*tie, *(_item(trial_id, pair, writer) for pair in (*mine, *fresh))]


def _item(place: str, pair: Pair, writer: str) -> Item:
    return Item(digest(STAGE, STAGE_VERSION, place, *pair, writer), pair._asdict())


async def try_judge(
    item: Item,
    llm: LLM,
    source: PassedEpisode,
    *,
    place: Row,
    stored: Iterable[Row],
    judge_role: RoleConfig,
    kinds: Kinds,
    writer: str,
    rule: PanelRule = "one",
    scored_only: Sequence[str] = (),
) -> ItemResult:
    """The row of `calibration` for one perturbed negative or paraphrase. `place`: the ids of
    grading and trial. `stored`: earlier rows of `calibration` on the trajectory: what was confirmed
    by the same checks is used again, and what `writer` (`writer_version`) attempted in vain is not
    attempted again. `scored_only`: as `DecisionConfig` has it; what such a criterion alone would
    reject is no failure to try the judge with."""
    messages, what = source.trajectory["messages"], item.data["perturbation"]
    checks = checks_version(kinds)
    place = place | {
        "trajectory_id": item.data["trajectory_id"],
        "split": source.trajectory["split"],
        "language": language_of(reported_in(messages), said_in(messages)),
        "checks_version": checks,
        "writer_version": "" if what == CONTROL else writer,
    }
    row = _row(place, what, what in (CONTROL, PARAPHRASE))
    if what == CONTROL:
        return ItemResult({STAGE: [row]})
    known = [
        r
        for r in stored
        if r["checks_version"] == checks
        and (r["outcome"] == "tried" or r["writer_version"] == writer)
    ]
    attempt = await Attempts(
        llm, source, kinds, item.item_id, known, frozenset(scored_only)
    ).attempt(what)
    if attempt is None:
        return dropped(NO_PLACE_BY_CODE)
    row |= _attempt_row(attempt)
    if attempt.tried is None:
        return ItemResult({STAGE: [row]}, ItemStatus("dropped", attempt.outcome))
    own = await _judged(
        llm,
        attempt.tried,
        source,
        item=item.item_id,
        judge_role=judge_role,
        kinds=kinds,
        rule=rule,
    )
    row |= _trial_row(own, DecisionConfig(scored_only=tuple(scored_only)))
    if what != PARAPHRASE:
        row["criterion_id"] = attempt.criterion_id
        row["named"] = _named(own, attempt.criterion_id, attempt.tried.words)
    return ItemResult({STAGE: [row]})


async def _judged(
    llm: LLM,
    tried: Tried,
    source: PassedEpisode,
    *,
    item: str,
    judge_role: RoleConfig,
    kinds: Kinds,
    rule: PanelRule,
) -> list[Row]:
    """The judge's verdicts on an edited episode. It is asked what code decides there, too: told
    values, and statements that code contradicts."""
    rubric, messages = source.rubric, tried.messages
    told = {c.id: Verdict(None, 0.0, "") for c in rubric.criteria if c.kind == "communicate"}
    statements = [
        s._replace(outcome="open", evidence="")
        for s in statements_of(messages, tried.calls)
        if s.outcome != "matched"
    ]
    rows = code_rows(rubric, told, statements, version=kinds.version)
    asked = JudgeQuestions(
        messages,
        tried.calls,
        source.tools,
        criteria_left(rubric, rows, standing_for(tried.calls)),
        statements,
    )
    judged = await ask_panel(llm, asked, item=item, role=judge_role, rule=rule)
    return panel_rows(asked, judged, rule)


def _row(place: Row, perturbation: str, expected: bool) -> Row:
    return place | {
        "perturbation": perturbation,
        "criterion_id": TRUTH,
        "kind": JUDGED,
        "channel": None,
        "expected": expected,
        "code_passed": None,
        "judge_passed": None,
        "supported": None,
        "evidence": None,
        "quote": None,
        "detail": None,
        "checker_version": "",
        "outcome": "tried",
        "confirmed_by": None,
        "named": None,
        "edit": None,
    }


def _attempt_row(attempt: Attempt) -> Row:
    return {
        "criterion_id": attempt.criterion_id,
        "channel": attempt.channel,
        "outcome": attempt.outcome,
        "detail": attempt.detail,
        "confirmed_by": attempt.confirmed_by,
        "edit": attempt.edit._asdict() if attempt.edit else None,
    }


def _trial_row(verdicts: Sequence[Row], config: DecisionConfig) -> Row:
    """What the judge alone makes of an episode, and the criterion that it fails."""
    own = [row for row in verdicts if row["checked_by"] == "judge"]
    decision = decide_rows(own, pass_threshold=0.0, config=config)
    shown = decision.named or (own[0] if own else {})
    return {
        "criterion_id": shown.get("criterion_id", TRUTH),
        "judge_passed": decision.accepted if own else None,
        "supported": shown.get("supported"),
        "evidence": shown.get("evidence"),
        "quote": shown.get("quote"),
        "checker_version": shown.get("checker_version", ""),
    }


def _named(verdicts: Iterable[Row], criterion_id: str, words: EditedWords) -> bool:
    """Whether a verdict that rejects quotes the edited words. Where the edit only left words out,
    there are none to quote: then it must be the criterion that the failure belongs to."""
    failed = [row for row in verdicts if row["mandatory"] and row["passed"] is False]
    if words.only_removed and any(
        row["criterion_id"] == criterion_id or row["kind"] == "communicate" for row in failed
    ):
        return True
    quoted = [row["quote"] or "" for row in failed]
    for row in failed:
        quoted += [
            part
            for entry in row["details"] or ()
            if entry["finding"] not in TRUE_FINDINGS or not entry["supported"]
            for part in (entry["says"], entry["quote"])
        ]
    return any(map(words.are_named_in, quoted))
