"""The texts of a tool as they are looked at: every string, one form, what a reader does not see."""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

HIDDEN = frozenset({"Cc", "Cf", "Co", "Cn", "Cs"})
"""Unicode categories that a reader does not see: controls, formats, private use, unassigned."""

SEEN = frozenset("\n\r\t\ufe0f\u00ad")
"""Of these, white space, a part of emoji, and the soft hyphen."""

JOINERS = frozenset("\u200c\u200d")
"""They belong to the spelling of Persian and of Indian languages and to emoji."""

_JOINED_SCRIPTS = (("\u0600", "\u109f"), ("\u1780", "\u17ff"))
"""Arabic to Burmese, and Khmer."""

MAX_MARKS = 4
"""Combining marks in a row; more of them cover text or carry it."""


def plain_form(text: str) -> str:
    """The text as rules read it: one form per character, no emphasis, single blanks."""
    folded = unicodedata.normalize("NFKC", text).replace("\u2019", "'")
    return " ".join(re.sub(r"[_*`\"\u00ad]+", " ", folded).split())


def hidden(text: str) -> bool:
    """Whether the text holds what a reader does not see."""
    if text.isascii():
        return any(c not in SEEN and (c < " " or c == "\x7f") for c in text)
    marks = 0
    for at, character in enumerate(text):
        category = unicodedata.category(character)
        is_joining = character in JOINERS and _joins(text, at)
        if category in HIDDEN and character not in SEEN and not is_joining:
            return True
        marks = marks + 1 if category in ("Mn", "Me") else 0
        if marks > MAX_MARKS:
            return True
    return False


def _joins(text: str, at: int) -> bool:
    """Whether the joiner stands after a letter or a picture that is written with joiners."""
    before = text[at - 1 : at]
    is_picture = unicodedata.category(before or " ")[0] == "S" or before == "\ufe0f"
    return is_picture or any(first <= before <= last for first, last in _JOINED_SCRIPTS)


def texts_in(node: Any) -> Iterator[str]:
    """Every string of a JSON value, keys too."""
    stack = [node]
    while stack:
        node = stack.pop()
        if isinstance(node, str):
            yield node
        elif isinstance(node, Mapping):
            for key, value in node.items():
                yield str(key)
                stack.append(value)
        elif isinstance(node, list):
            stack.extend(node)
