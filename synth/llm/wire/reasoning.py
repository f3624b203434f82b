"""Reasoning that a model left in its text, cut out of it.

Servers that know the model's marks move its reasoning to a field of its own; others leave it where
it was written: before the answer, between `<think>` and `</think>`, the first of which some chat
templates have put into the prompt already.
"""

import re
from typing import NamedTuple

_OPENING = re.compile(r"\s*<(think|thinking|thought|reasoning)>", re.IGNORECASE)
_CLOSING = re.compile(r"</(think|thinking|thought|reasoning)>", re.IGNORECASE)


class CutText(NamedTuple):
    content: str
    reasoning: str | None
    is_open: bool
    """The reasoning never ended: nothing of the text is an answer."""


def cut_reasoning(text: str) -> CutText:
    """The text without reasoning at its beginning, and that reasoning."""
    if "<" not in text:  # most answers
        return CutText(text, None, False)
    opening = _OPENING.match(text)
    start = opening.end() if opening else 0
    closing = _CLOSING.search(text, start)
    if opening is None:
        # a closing mark alone: the template wrote the opening one; never within an answer's JSON
        if closing is None or ('"' in text[: closing.start()] and text.lstrip()[:1] in '{["`'):
            return CutText(text, None, False)
    elif closing is None:
        return CutText("", text[start:].strip() or None, True)
    assert closing is not None
    reasoning = text[start : closing.start()].strip() or None
    return CutText(text[closing.end() :].lstrip(), reasoning, False)
