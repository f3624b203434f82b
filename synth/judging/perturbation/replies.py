"""Failures that are put into what the agent says without a model: facts, claims, manner."""

import re
from collections.abc import Sequence

from synth.judging.perturbation import texts
from synth.judging.perturbation.episodes import EpisodeEdit, Perturbation
from synth.judging.perturbation.values import spellings
from synth.rubrics.built_in import mentions
from synth.rubrics.criteria import CommunicateCheck
from synth.rubrics.reading.messages import text_of
from synth.rubrics.standing import TRUTH

_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")


def fact_not_told(edit: EpisodeEdit) -> tuple[str | None, str]:
    if (criterion := edit.criterion("communicate")) is None:
        return None, ""
    values = CommunicateCheck.model_validate(criterion.check).values
    for i in edit.replies():
        kept = _SENTENCE.split(text_of(edit.messages[i]))
        kept = [s for s in kept if not any(mentions(s, value) for value in values)]
        edit.messages[i]["content"] = " ".join(kept) or edit.rng.choice(texts.EMPTY_ANSWERS)
    return "answers", f"nothing was said of {', '.join(map(str, values))}"


def fact_changed(edit: EpisodeEdit) -> tuple[str | None, str]:
    if (criterion := edit.criterion("communicate")) is None:
        return None, ""
    for value in CommunicateCheck.model_validate(criterion.check).values:
        for old, new in spellings(value):
            found = [i for i in edit.replies() if old in text_of(edit.messages[i])]
            for i in found:
                edit.messages[i]["content"] = text_of(edit.messages[i]).replace(old, new)
            if found:
                return TRUTH, f"said {new}, not {old}"
    return None, ""


def claimed_not_done(edit: EpisodeEdit) -> tuple[str | None, str]:
    writes = edit.writes()
    for call in writes:
        edit.remove(call)
    return (TRUTH if writes else None), "no changing call was made"


def manner(criterion_id: str, wordings: Sequence[str], *, instead: bool = False) -> Perturbation:
    """One of the wordings added to the agent's last words, or said `instead` of all of them, so
    that the criterion fails."""

    def perturbation(edit: EpisodeEdit) -> tuple[str | None, str]:
        text = edit.rng.choice(wordings)
        if instead:
            for i in edit.replies():
                edit.messages[i]["content"] = text
        elif not edit.say(text):
            return None, ""
        return (criterion_id if edit.replies() else None), f"said: {text[:80]}"

    return perturbation
