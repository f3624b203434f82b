"""Failures in what the agent says: facts, format, manner."""

import json
import re
from collections.abc import Sequence

from synth.judging.perturbation import texts
from synth.judging.perturbation.episodes import EpisodeEdit, Perturbation
from synth.judging.perturbation.values import spellings
from synth.rubrics.built_in import mentions
from synth.rubrics.criteria import JUDGED, CommunicateCheck, Criterion

_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_MANNER = re.compile(r"\b(?:polite|manner|tone|friendly|courteous)\b", re.IGNORECASE)
_SAYS = re.compile(r"\bsays clearly\b", re.IGNORECASE)


def fact_not_told(edit: EpisodeEdit) -> tuple[Criterion | None, str]:
    if (criterion := edit.criterion("communicate")) is None:
        return None, ""
    values = CommunicateCheck.model_validate(criterion.check).values
    for i in edit.replies():
        kept = _SENTENCE.split(edit.messages[i].get("content") or "")
        kept = [s for s in kept if not any(mentions(s, value) for value in values)]
        edit.messages[i]["content"] = " ".join(kept) or edit.rng.choice(texts.EMPTY_ANSWERS)
    return criterion, f"nothing was said of {', '.join(map(str, values))}"


def fact_changed(edit: EpisodeEdit) -> tuple[Criterion | None, str]:
    if (criterion := edit.criterion("communicate")) is None:
        return None, ""
    for value in CommunicateCheck.model_validate(criterion.check).values:
        for old, new in spellings(value):
            found = [i for i in edit.replies() if old in (edit.messages[i].get("content") or "")]
            for i in found:
                edit.messages[i]["content"] = edit.messages[i]["content"].replace(old, new)
            if found:
                return criterion, f"said {new}, not {old}"
    return None, ""


def format_broken(edit: EpisodeEdit) -> tuple[Criterion | None, str]:
    if not (places := edit.replies()):
        return None, ""
    text = edit.messages[places[-1]].get("content") or ""
    raw = json.dumps({"status": "done", "message": text}, ensure_ascii=False)
    markup = f'<tool_call>{{"name": "reply", "arguments": {raw}}}</tool_call>'
    edit.say(edit.rng.choice((raw, markup)), instead=True)
    return edit.criterion("format"), "the last words are raw data"


def manner(wordings: Sequence[str], *, instead: bool = False) -> Perturbation:
    """One of the wordings added to the agent's last words, or said `instead` of them."""

    def perturbation(edit: EpisodeEdit) -> tuple[Criterion | None, str]:
        text = edit.rng.choice(wordings)
        said = edit.say(text, instead=instead)
        fits = edit.criterion(JUDGED, lambda c: bool(_MANNER.search(c.words)))
        return (fits if said else None), f"said: {text[:80]}"

    return perturbation


def evasive(edit: EpisodeEdit) -> tuple[Criterion | None, str]:
    for i in edit.replies():
        edit.messages[i]["content"] = edit.rng.choice(texts.EVASIVE)
    return edit.criterion(JUDGED, lambda c: bool(_SAYS.search(c.words))), "was not said"
