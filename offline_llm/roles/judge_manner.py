"""What a judge by rule takes for a deed, and what it minds about an assistant's manner: rudeness,
curtness, jargon, rambling, and claims of work that no call did. By everyday words and counts; it
knows no conversation by heart."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from offline_llm.reading.toolbox import READ_VERBS
from offline_llm.reading.words import found, plain, sentences, stem_set, stems

_RUDE = re.compile(
    r"\b(?:stupid|idiot\w*|dumb|pathetic|ashamed|ridiculous|moron\w*|shut up|wast\w+ my time"
    r"|leave me alone|people like you|half a brain|learn to|not my problem|whatever|go away"
    r"|figure it out|who cares|your own fault)\b",
    re.IGNORECASE,
)
_KIND = re.compile(r"\b(?:done|welcome|thank\w*|sorry|glad|sure|happy|nothing)\b", re.IGNORECASE)
_CLAIM = re.compile(
    r"\b(?:I have|I've|and)(?: \w+ly| also| already| now| even)? (?!changed nothing)"
    r"(\w{3,}ed|sent|set|made|put|paid|given|taken|written)\b"
)
_FIRST = re.compile(r"\bI(?: have|'ve)\b")
_LOOKS = stem_set("looked checked found searched listed asked needed based related used")
_SHORT, _TECHNICAL, _STRAY = 5, 4, 3
"""Words of a curt reply at most; technical abbreviations, and sentences about nothing that was
talked of, at least."""


@dataclass(frozen=True)
class Line:
    """One thing that happened: `kind` is user, agent, call or result."""

    kind: str
    text: str
    tool: str = ""
    failed: bool = False


def effects(lines: list[Line]) -> list[tuple[Line, Line]]:
    """Calls that succeeded, each with what it returned."""
    pending: list[Line] = []
    kept: list[tuple[Line, Line]] = []
    for line in lines:
        if line.kind == "call":
            pending.append(line)
        elif line.kind == "result" and pending:
            call = pending.pop(0)
            if not line.failed:
                kept.append((call, line))
    return kept


def reads(call: Line) -> bool:
    return bool(READ_VERBS & set(stems(plain(call.tool))))


def manner_fault(
    told: Sequence[str], heard: Sequence[str], num_changes: int, instructions: str
) -> str | None:
    """The first words to the user that are amiss, None where all are well. `heard`: what users and
    tools said; `num_changes`: calls that may have changed something and succeeded."""
    for text in told:
        if mark := _RUDE.search(text):
            return next((s for s in sentences(text) if mark[0] in s), text)
    if told and len(told[-1].split()) < _SHORT and not _KIND.search(told[-1]):
        return told[-1]
    known = " ".join([*heard, instructions])
    for text in told:
        if fault := _jargon(text, known) or _stray(text, known):
            return fault
    claims = [s for text in told for s in sentences(text) for _ in range(_claims(s))]
    return claims[-1] if len(claims) > num_changes else None


def _claims(sentence: str) -> int:
    """How much finished work of its own the sentence tells of."""
    if not _FIRST.search(sentence):
        return 0
    verbs = [m[1] for m in _CLAIM.finditer(sentence)]
    return sum(not found(next(iter(stems(verb)), verb), _LOOKS) for verb in verbs)


def _jargon(text: str, known: str) -> str | None:
    for sentence in sentences(text):
        terms = [t for t in re.findall(r"\b[A-Z][A-Za-z]*[A-Z]\b", sentence) if t not in known]
        if len(set(terms)) >= _TECHNICAL:
            return sentence
    return None


def _stray(text: str, known: str) -> str | None:
    """Sentences whose words nobody else has used."""
    said = stem_set(plain(known))
    strays = []
    for sentence in sentences(text):
        own = {word for word in stem_set(plain(sentence)) if len(word) > 3}
        if len(own) >= _SHORT and sum(found(word, said) for word in own) * 4 < len(own):
            strays.append(sentence)
    return strays[0] if len(strays) >= _STRAY else None
