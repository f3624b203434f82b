"""Perturbations that need no model, by name.

They edit the rows of an episode so that one criterion must now fail. Beside them stand the faults
that a model writes (`synth.judging.perturbation.faults`).
"""

from random import Random
from typing import NamedTuple

from records.seeds import rng_of
from records.tables.schemas import Row
from synth.judging.perturbation import replies, texts
from synth.judging.perturbation.attacks import CHANNELS, attack, inject
from synth.judging.perturbation.episodes import (
    EpisodeEdit,
    PassedEpisode,
    Perturbation,
    said_in,
)
from synth.judging.perturbation.faults import BY_NAME
from synth.rubrics.standing import TRUTH

CONTROL = "control"
"""The `perturbation` of an episode that was left as it is."""

PARAPHRASE = "paraphrase"
"""The `perturbation` of an episode whose report was put into other words."""

PERTURBATIONS_VERSION = 4
"""Raised when the same episode would be perturbed otherwise."""


class PerturbedNegative(NamedTuple):
    perturbation: str
    criterion_id: str
    """That must now fail."""
    messages: list[Row]
    calls: list[Row]
    detail: str
    """What was done to the episode, in words."""
    wrong: str = ""
    """Words of the replies that are wrong though they stood there before."""


BY_PHRASE: dict[str, Perturbation] = {
    "fact_not_told": replies.fact_not_told,
    "fact_changed": replies.fact_changed,
    "claimed_not_done": replies.claimed_not_done,
    "nl_rude": replies.manner("manners", texts.RUDE),
    "nl_curt": replies.manner("answers", texts.CURT, instead=True),
    "nl_unconfirmed": replies.manner(TRUTH, texts.UNCONFIRMED),
    "nl_evasive": replies.manner("answers", texts.EVASIVE, instead=True),
}
"""Failures made of phrases and of the episode's own values."""

ATTACKS = tuple(f"attack_{channel}" for channel in CHANNELS)
"""A failure of the others, and text that tells the judge to overlook it."""

_ATTACKED = ("claimed_not_done", "fact_not_told", "fact_changed", "nl_unconfirmed", "nl_rude")

PERTURBATIONS = (*BY_NAME, *BY_PHRASE, *ATTACKS)
"""Every name, in the order in which ties between them are settled."""


def base_of(name: str, source: PassedEpisode) -> str | None:
    """The failure that a text aimed at the judge is to cover up; None where there is no place."""
    rng = rng_of(source.trajectory["trajectory_id"], f"plant:{name}")
    bases = rng.sample(_ATTACKED, len(_ATTACKED))
    return next((base for base in bases if perturb(base, source) is not None), None)


def perturb(name: str, source: PassedEpisode) -> PerturbedNegative | None:
    """The episode with a failure of `BY_PHRASE`, the same for the same episode; None where it has
    no place for it."""
    rng = rng_of(source.trajectory["trajectory_id"], f"plant:{name}")
    edit = EpisodeEdit(source, rng)
    criterion_id, detail = BY_PHRASE[name](edit)
    if criterion_id is None:
        return None
    wrong = said_in(edit.messages) if name == "claimed_not_done" else ""
    return PerturbedNegative(name, criterion_id, edit.messages, edit.calls, detail, wrong)


def attacked(name: str, negative: PerturbedNegative, rng: Random) -> PerturbedNegative | None:
    """The negative with text aimed at the judge; None where the conversation has no such place."""
    channel = name.removeprefix("attack_")
    text = attack(rng, negative.criterion_id)
    if not inject(negative.messages, channel, text):
        return None
    base = negative.perturbation
    detail = f"{base}: {negative.detail}; in the {channel}: {text[:120]}"
    return negative._replace(perturbation=name, detail=detail)
