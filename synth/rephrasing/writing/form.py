"""What is wrong with a rewritten part whatever it says: its size, its marks and headings, and
whether it only says again what is written already."""

import re
from collections.abc import Set
from typing import NamedTuple

from records.sizes import count_tokens
from synth.rephrasing.structure.chunks import Document, TextPart

SHORTEST, LONGEST, SLACK_TOKENS = 0.2, 5.0, 120
"""Bounds of a rewritten part's size as shares of the source's; `SLACK_TOKENS` more are allowed,
for a short part in a form that takes words."""

RUN_WORDS = 8
"""Words in a row that count as said again."""

MOST_SAID_AGAIN = 0.3
"""Share of a part's runs of words that may stand in what was written before."""

_WORD = re.compile(r"\w+")

WordRun = tuple[str, ...]


class PartFault(NamedTuple):
    reason: str
    words: str
    """For the rewriter."""
    is_of_fact: bool = False
    """Whether it says something else than the source, and is not only of another form."""


def fault_of_form(
    document: Document, part: TextPart, text: str, said: Set[WordRun]
) -> PartFault | None:
    """`text`: the rewritten part with its markers; `said`: runs of words of what stands
    already."""
    size = count_tokens(document.mark.sub("", text))
    if size < SHORTEST * part.tokens:
        return PartFault("too_short", "much of the part is missing; rewrite all of it")
    if size > LONGEST * part.tokens + SLACK_TOKENS:
        return PartFault("too_long", "it says far more than the part; rewrite this part alone")
    markers = document.markers(part)
    if (there := document.mark.findall(text)) != markers:
        wanted = ", ".join(markers) or "no such line"
        words = f"the part has {wanted}; the answer has {', '.join(there) or 'none'}"
        return PartFault("structure_lost", f"{words}: each once, in this order")
    lines = {_plain(line) for line in text.splitlines()}
    for heading in document.headings(part):
        if _plain(heading) not in lines:
            return PartFault("structure_lost", f"the heading {heading!r} must stay as a line")
    own = runs_of(document.work(part))
    runs = [run for run in _runs(text) if run not in own]
    again = sum(run in said for run in runs)
    if again > MOST_SAID_AGAIN * max(len(runs), RUN_WORDS):
        return PartFault("said_again", "it repeats what is written so far; go on from there")
    return None


def runs_of(text: str) -> set[WordRun]:
    """Its runs of words, by which what is said again is told."""
    return set(_runs(text))


def _plain(line: str) -> str:
    """A heading as it is compared: its words, in small letters."""
    return " ".join(_WORD.findall(line.lower()))


def _runs(text: str) -> list[WordRun]:
    words = _WORD.findall(text.lower())
    return [tuple(words[at : at + RUN_WORDS]) for at in range(len(words) - RUN_WORDS + 1)]
