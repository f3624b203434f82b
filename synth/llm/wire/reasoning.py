"""Reasoning that a model left in its text, cut out of it.

Servers that know the model's marks move its reasoning to a field of its own; others leave it where
it was written: before the answer, between `<think>` and `</think>`, the first of which some chat
templates have put into the prompt already.
"""

import re
from typing import NamedTuple

_NAMES = r"(think|thinking|thought|reasoning)"
_OPENING = re.compile(rf"\s*<{_NAMES}>", re.IGNORECASE)
_ANY_OPENING = re.compile(rf"<{_NAMES}>", re.IGNORECASE)
_CLOSING = re.compile(rf"</{_NAMES}>", re.IGNORECASE)
_LINE_END = re.compile(r"[ \t]*(?:[\r\n]|\Z)")
_JSON = re.compile(r"[ \t]*[{\[]")
_ESCAPE = re.compile(r"\\.")


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
