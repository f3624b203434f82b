"""Reasoning that a model left in its text, cut out of it.

Servers that know the model's marks move its reasoning to a field of its own; others leave it where
it was written: before the answer, between `<think>` and `</think>`, the first of which some chat
templates have put into the prompt already.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

_NAMES = r"(think|thinking|thought|reasoning)"
_OPENING = re.compile(rf"\s*<{_NAMES}>", re.IGNORECASE)
_ANY_OPENING = re.compile(rf"<{_NAMES}>", re.IGNORECASE)
_CLOSING = re.compile(rf"</{_NAMES}>", re.IGNORECASE)
_LINE_END = re.compile(r"[ \t]*(?:[\r\n]|\Z)")
_JSON = re.compile(r"[ \t]*[{\[]")
_ESCAPE = re.compile(r"\\.")


class ReasoningBlock(NamedTuple):
    start: int
    end: int
    """The text's own end, of a block that never ends."""
    opening: str
    """Its opening mark, in small letters."""


class CutText(NamedTuple):
    content: str
    reasoning: str | None


def cut_reasoning(text: str) -> CutText:
    """The text without reasoning at its beginning, and that reasoning. Where the reasoning never
    ends, nothing of the text is an answer."""
    if "<" not in text:  # most answers
        return CutText(text, None)
    pieces: list[str] = []
    rest = text
    if (end := _end_of_unopened(text)) is not None:
        pieces.append(text[: end.start()])
        rest = text[end.end() :].lstrip()
    while opening := _OPENING.match(rest):
        name = re.escape(opening[1])
        closing = re.compile(f"</{name}>", re.IGNORECASE).search(rest, opening.end())
        if closing is None:
            pieces.append(rest[opening.end() :])
            return CutText("", _joined(pieces))
        pieces.append(rest[opening.end() : closing.start()])
        rest = rest[closing.end() :].lstrip()
    return CutText(rest, _joined(pieces))


def reasoning_blocks(text: str) -> Iterator[ReasoningBlock]:
    """Every block with an opening mark, wherever it stands, in order of beginning: one may stand
    within another. A mark in inline code opens none."""
    for opening in _ANY_OPENING.finditer(text):
        line = text.rfind("\n", 0, opening.start()) + 1
        if text.count("`", line, opening.start()) % 2:
            continue
        closing = re.compile(f"</{opening[1]}>", re.IGNORECASE).search(text, opening.end())
        end = closing.end() if closing else len(text)
        yield ReasoningBlock(opening.start(), end, opening[0].lower())


def _end_of_unopened(text: str) -> re.Match[str] | None:
    """A closing mark whose opening one the template wrote. A mark that an answer is about stands
    within a line, after its opening one, or in a string of JSON."""
    closing = _CLOSING.search(text)
    if closing is None or _ANY_OPENING.search(text, 0, closing.start()):
        return None
    before = text[: closing.start()]
    if '"' in before and text.lstrip()[:1] in '{["`':
        return None
    begins_line = before.rstrip(" \t")[-1:] in ("", "\n")
    if begins_line or _LINE_END.match(text, closing.end()):
        return closing
    in_string = _ESCAPE.sub("", before).count('"') % 2 == 1
    return closing if _JSON.match(text, closing.end()) and not in_string else None


def _joined(pieces: list[str]) -> str | None:
    return "\n\n".join(filter(None, map(str.strip, pieces))) or None
