"""Words, numbers, texts and signs of an expression, and the error of one that cannot be read."""

import re
from collections.abc import Iterator
from typing import NamedTuple

COMPARISONS = ("==", "!=", "<=", ">=", "<", ">", "in", "contains", "starts_with", "ends_with")
KEYWORDS = frozenset(
    {"and", "or", "not", "true", "false", "null"} | {s for s in COMPARISONS if s.isidentifier()}
)


class ExpressionError(ValueError):
    """An expression that cannot be read or typed: where in the text, and what is allowed."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(f"{message} (at character {position + 1})")
        self.position = position


class Token(NamedTuple):
    kind: str
    text: str
    position: int


_TOKEN = re.compile(
    r"(?P<space>[ \t\r\n]+)"
    r"|(?P<number>\d+(?:\.\d+)?)"
    r"|(?P<text>'(?:[^'\\]|\\['\\])*'|\"(?:[^\"\\]|\\[\"\\])*\")"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<symbol>==|!=|<=|>=|[-<>+*/().,\[\]{}:])",
    re.ASCII,
)


def tokens(text: str) -> Iterator[Token]:
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise ExpressionError(_unreadable(text, position), position)
        kind = match.lastgroup or ""
        if kind == "name" and match[0] in KEYWORDS:
            kind = "keyword"
        if kind != "space":
            yield Token(kind, match[0], position)
        position = match.end()
    yield Token("end", "the end", len(text))


def _unreadable(text: str, position: int) -> str:
    character = text[position]
    if character in "'\"":
        return f"text that starts with {character} does not end; inside it write \\{character}"
    hints = {
        "=": "; write == to compare",
        "&": "; write and",
        "|": "; write or",
        "!": "; write not",
    }
    return f"unexpected {character!r}{hints.get(character, '')}"
