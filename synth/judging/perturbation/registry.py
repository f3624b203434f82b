"""Every perturbation by its name, and how an episode becomes a perturbed negative.

A perturbation edits the rows of an episode (messages, calls and the changes that they log) so that
one criterion of its rubric must now fail, and names it. Where code has a say it is asked: a
negative that does not fail the criterion meant is discarded.

Episodes with graded tests are left out: their verdict would need a sandbox for each perturbed
negative.
"""

from random import Random
from typing import NamedTuple

from records.seeds import rng_of
from records.tables.schemas import Row
from synth.judging.perturbation import calls, replies, texts
from synth.judging.perturbation.attacks import CHANNELS, attack, inject
from synth.judging.perturbation.episodes import EpisodeEdit, PassedEpisode, Perturbation
from synth.rubrics.built_in import Kinds
from synth.rubrics.criteria import Criterion
from synth.rubrics.reward import evidence_of

PERTURBATIONS_VERSION = 2
"""Raised when the same episode would be perturbed otherwise."""


class PerturbedNegative(NamedTuple):
    perturbation: str
    criterion: Criterion
    """That must now fail."""
    channel: str | None
    """Where text aimed at the judge stands; None where there is none."""
    messages: list[Row]
    calls: list[Row]
    detail: str
    """What was done to the episode, in words."""


BY_CODE: dict[str, Perturbation] = {
    "wrong_argument": calls.wrong_argument,
    "missing_call": calls.missing_call,
    "forbidden_call": calls.forbidden_call,
    "wrong_order": calls.wrong_order,
    "state_not_reached": calls.state_not_reached,
    "collateral_change": calls.collateral_change,
    "claimed_not_done": calls.claimed_not_done,
    "fact_not_told": replies.fact_not_told,
    "fact_changed": replies.fact_changed,
    "policy_broken": calls.policy_broken,
    "format_broken": replies.format_broken,
}
"""Failures that code confirms."""

BY_WORDS: dict[str, Perturbation] = {
    "nl_rude": replies.manner(texts.RUDE),
    "nl_curt": replies.manner(texts.CURT, instead=True),
    "nl_rambling": replies.manner(texts.RAMBLING),
    "nl_jargon": replies.manner(texts.JARGON),
    "nl_unconfirmed": replies.manner(texts.UNCONFIRMED),
    "nl_evasive": replies.evasive,
}
"""Failures of `nl` criteria: of those about the agent's manner, and of those that want it to say
clearly what it does not do."""

ATTACKS = tuple(f"attack_{channel}" for channel in CHANNELS)
"""A failure of the others, and text that tells the judge to overlook it."""

_ATTACKED = ("claimed_not_done", "fact_not_told", "state_not_reached", "wrong_argument", "nl_rude")


def perturb(name: str, source: PassedEpisode) -> PerturbedNegative | None:
    """The perturbed episode, the same for the same episode; None where it has no place for it."""
    rng = rng_of(source.trajectory["trajectory_id"], f"plant:{name}")
    if name not in ATTACKS:
        return _perturbed(name, (BY_CODE | BY_WORDS)[name], source, rng)
    channel = name.removeprefix("attack_")
    for base in rng.sample(_ATTACKED, len(_ATTACKED)):
        negative = _perturbed(name, (BY_CODE | BY_WORDS)[base], source, rng)
        if negative is not None:
            text = attack(rng, negative.criterion.id)
            if inject(negative.messages, channel, text):
                detail = f"{base}: {negative.detail}; in the {channel}: {text[:120]}"
                return negative._replace(channel=channel, detail=detail)
    return None


def _perturbed(
    name: str, perturbation: Perturbation, source: PassedEpisode, rng: Random
) -> PerturbedNegative | None:
    edit = EpisodeEdit(source, rng)
    criterion, detail = perturbation(edit)
    if criterion is None:
        return None
    return PerturbedNegative(name, criterion, None, edit.messages, edit.calls, detail)


def is_confirmed(negative: PerturbedNegative, kinds: Kinds) -> bool:
    """Whether code finds the failure, where it has a say; False also where the edit does not hold
    together."""
    try:
        verdict = kinds.check(negative.criterion, evidence_of(negative.messages, negative.calls))
    except ValueError:  # changes that cannot follow each other
        return False
    return verdict is None or not verdict.passed
