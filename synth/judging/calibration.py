"""The judge on trial: what it says of perturbed negatives and of paraphrases of episodes that code
and the judge itself let pass.

A trial belongs to a judge, its prompt and the version of the checks, not to one grading: whatever
was tried with the three counts for the next grading with them. What the rates decide stands in
`synth.judging.judge_rates`, how a negative is made and confirmed in `synth.judging.negatives`.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

from pydantic import Field

from records.config import Config
from records.digest import digest
from records.store.dataset import ItemStatus
from records.tables.schemas import Row
from synth.engine.stages import Item, ItemResult
from synth.judging.decision import DecisionConfig, decide_rows
from synth.judging.judge import TRUE_FINDINGS, JudgeQuestions, prompt_version
from synth.judging.judge_rates import CONTROL, PARAPHRASE, MinimumQuality
from synth.judging.negatives import Attempt, Attempts, Tried
from synth.judging.panel import PanelConfig, PanelRule, ask_panel, judge_identity
from synth.judging.perturbation.edited_words import EditedWords
from synth.judging.perturbation.episodes import PassedEpisode, reported_in, said_in
from synth.judging.perturbation.registry import PERTURBATIONS, PERTURBATIONS_VERSION, order_for
from synth.judging.review import code_rows, criteria_left, panel_rows
from synth.llm.client import LLM
from synth.llm.settings.config import RoleConfig
from synth.rubrics.built_in import Kinds, Verdict
from synth.rubrics.criteria import JUDGED
from synth.rubrics.patch import RubricPatch
from synth.rubrics.reading.locales import language_of
from synth.rubrics.standing import STANDING_VERSION, TRUTH, standing_for
from synth.rubrics.statements.statements import STATEMENTS_VERSION, statements_of

STAGE = "calibration"
STAGE_VERSION = 3
"""Raised when the same episode would be tried otherwise."""

PARAPHRASED_SHARE = 1 / 3
"""Paraphrases, for each perturbed negative: rejections of what is fine in other words."""

ATTEMPTS = 3
"""Perturbations that are tried on an episode until one of them finds a place and is confirmed."""

_CHOICE = 20
"""Episodes that are looked at for each perturbed negative, and a thousand more: enough to begin
with every perturbation equally often."""

_ROUNDS = len(PERTURBATIONS) // ATTEMPTS
"""Perturbed negatives that one episode can give."""


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
    """Perturbed negatives that the judge is tried with, as a share of the graded trajectories; each
    is one to three requests to the generator and one to the judge. With 0 the judge is
    unmeasured."""
    max_of_one: int = Field(default=40, ge=1, le=10_000)
    """Perturbed negatives that are begun with one failure, such as wrong_value, at most."""
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
    """Ask the judge what a failure goes back to where code rejects what was done and the user may
    have misled the agent: one short request, without which nobody is named. It rejects nothing."""
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


class _Slot(NamedTuple):
    """A perturbed negative to be made of an episode, which can give several."""

    trajectory_id: str
    number: int

    @property
    def first(self) -> str:
        """The perturbation that is tried first, where the episode has a place for all."""
        return order_for(self.trajectory_id)[self.number * ATTEMPTS]


def plan_calibration(
    passed: Iterable[str],
    *,
    grading_id: str,
    trial_id: str,
    graded: int,
    config: JudgingConfig,
    done: Collection[str],
) -> list[Item]:
    """Items for perturbed negatives and for paraphrases as controls. `passed`: trajectories that
    passed by code and judge, whose ids are digests, so that their order is a draw; `done`: ids of
    items that were tried.

    What was tried counts, and the rest is topped up to the wanted number, spread over what is tried
    first; so a trial that was broken off goes on with the same items.
    """
    passed, wanted = sorted(passed), num_perturbed(graded, config)
    negatives = _negatives(passed, trial_id, wanted, config, done)
    paraphrased = _paraphrased(
        passed, trial_id, math.ceil(len(negatives) * PARAPHRASED_SHARE), done
    )
    items = [*(_item(trial_id, i, PARAPHRASE) for i in paraphrased), *negatives]
    # its row ties the grading to a trial of which every other row may be an earlier grading's
    tie = [_item(grading_id, i, CONTROL) for i in passed[:1] if items]
    return [*tie, *items]


def _negatives(
    passed: Sequence[str], trial_id: str, wanted: int, config: JudgingConfig, done: Collection[str]
) -> list[Item]:
    chosen: list[Item] = []
    begun: Counter[str] = Counter()
    for number in range(_ROUNDS):
        if len(chosen) >= wanted:
            break
        slots = [_Slot(i, number) for i in passed]
        items = {slot: _item(trial_id, slot.trajectory_id, "", number) for slot in slots}
        tried = [slot for slot in slots if items[slot].item_id in done]
        begun.update(slot.first for slot in tried)
        left = [slot for slot in slots if items[slot].item_id not in done]
        missing = wanted - len(chosen) - len(tried)
        more = _spread(left[: _CHOICE * wanted + 1000], begun, missing, config.max_of_one)
        chosen += [items[slot] for slot in (*tried, *more)]
    return chosen


def _spread(slots: Iterable[_Slot], begun: Counter[str], wanted: int, most: int) -> list[_Slot]:
    """So many of the slots, those first whose first perturbation was begun least often."""
    waiting: dict[str, list[_Slot]] = {name: [] for name in PERTURBATIONS}
    for slot in slots:
        waiting[slot.first].append(slot)
    chosen: list[_Slot] = []
    while len(chosen) < wanted:
        able = [name for name in waiting if waiting[name] and begun[name] < most]
        if not able:
            break
        name = min(able, key=lambda name: begun[name])  # the first of equals
        chosen.append(waiting[name].pop(0))
        begun[name] += 1
    return chosen


def _paraphrased(
    passed: Sequence[str], trial_id: str, wanted: int, done: Collection[str]
) -> list[str]:
    ranked = passed[::-1]  # not those first that become negatives
    tried = [i for i in ranked if _item(trial_id, i, PARAPHRASE).item_id in done]
    known = set(tried)
    left = (i for i in ranked if i not in known)
    return [*tried, *islice(left, max(0, wanted - len(tried)))]


def _item(place: str, trajectory_id: str, what: str, number: int = 0) -> Item:
    return Item(
        digest(STAGE, STAGE_VERSION, place, trajectory_id, what, number),
        {"trajectory_id": trajectory_id, "what": what, "number": number},
    )


async def try_judge(
    item: Item,
    llm: LLM,
    source: PassedEpisode,
    *,
    place: Row,
    stored: Iterable[Row],
    judge_role: RoleConfig,
    kinds: Kinds,
    rule: PanelRule = "one",
    scored_only: Sequence[str] = (),
) -> ItemResult:
    """Rows of `calibration` for one perturbed negative or paraphrase: one for each attempt that was
    made. `place`: the ids of grading and trial. `stored`: earlier rows of `calibration` on the
    trajectory, whose edits are used again. `scored_only`: as `DecisionConfig` has it; what such a
    criterion alone would reject is no failure to try the judge with."""
    messages = source.trajectory["messages"]
    place = place | {
        "trajectory_id": item.data["trajectory_id"],
        "split": source.trajectory["split"],
        "language": language_of(reported_in(messages), said_in(messages)),
    }
    what = item.data["what"]
    if what == CONTROL:
        return ItemResult({STAGE: [_row(place, CONTROL, True)]})
    aside = frozenset(scored_only)
    attempts = Attempts(llm, source, kinds, item.item_id, list(stored), aside)
    if what == PARAPHRASE:
        made = [await attempts.paraphrase()]
    else:
        made = await attempts.negatives(item.data["number"] * ATTEMPTS, ATTEMPTS)
    rows = [_row(place, a.perturbation, what == PARAPHRASE) | _attempt_row(a) for a in made]
    last = made[-1].tried if made else None
    if last is None:
        return ItemResult({STAGE: rows}, ItemStatus("dropped", "not_confirmed"))
    own = await _judged(
        llm,
        last,
        source,
        item=item.item_id,
        judge_role=judge_role,
        kinds=kinds,
        rule=rule,
    )
    decided = _trial_row(own, DecisionConfig(scored_only=tuple(scored_only)))
    if what != PARAPHRASE:
        decided["criterion_id"] = last.criterion_id
        decided["named"] = _named(own, last.criterion_id, last.words)
    rows[-1] |= decided
    return ItemResult({STAGE: rows})


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
    shown = decision.failed or (own[0] if own else {})
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
