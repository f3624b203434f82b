"""Marks within a paragraph: what stands between those of formulas, and inline code."""

import re

MAX_FORMULA = 4_000
"""Characters between two formula marks; what is longer is prose with a stray mark in it."""

_MARK = re.compile(
    r"\$\$?|\\[()\[\]]|`+|\n[ \t]*\n|\\(?:begin|end)\{(?:equation|align|aligned|gather)\*?\}"
)
_BARE_NUMBER = re.compile(r"\s*-?\d{1,30}(?:(?:[.,]|\{,\})\d{1,30})?\s*")
_CLOSES = {"\\(": "\\)", "\\[": "\\]"}


def parted_marks(text: str) -> tuple[str, list[str], list[str]]:
    """The text with formulas blanked and code spans left without marks; formulas; code spans.

    A formula that is nothing but a number stays in the text, too: it is a number like those in
    figures, and nobody would miss it otherwise.

    A dollar opens a formula only before a sign, and closes it only after one and before no digit,
    so that "$5 and $10" are prices.
    """
    if "$" not in text and "\\" not in text and "`" not in text:
        return text, [], []
    formulas: list[str] = []
    spans: list[str] = []
    kept: list[str] = []
    done, mark = 0, ""
    begin = opened = 0  # where the opening mark begins and where it ends
    for found in _MARK.finditer(text):
        token, start, end = found[0], found.start(), found.end()
        if mark and (token[0] == "\n" or start - opened > MAX_FORMULA):
            mark = ""
        if not mark:
            if _opens(token, text, end):
                mark, opened, begin = token, end, start
            continue
        if not _closes(mark, token, text, opened, start, end):
            if mark == "$" and token == "$" and _opens(token, text, end):
                opened, begin = end, start
            continue
        inner = text[opened:start]
        kept.append(text[done:begin])
        is_number = _BARE_NUMBER.fullmatch(inner) is not None
        kept.append(inner.replace("{,}", ",") if mark[0] == "`" or is_number else " ")
        (spans if mark[0] == "`" else formulas).append(inner.strip())
        done, mark = end, ""
    kept.append(text[done:])
    return "".join(kept), [f for f in formulas if f], [s for s in spans if s]


def _opens(token: str, text: str, end: int) -> bool:
    if token == "$":
        return not text[end : end + 1].isspace()
    return token[0] in "$`" or token in _CLOSES or token.startswith("\\begin")


def _closes(mark: str, token: str, text: str, opened: int, start: int, end: int) -> bool:
    if mark == "$":
        before, after = text[start - 1 : start], text[end : end + 1]
        return token == "$" and start > opened and not before.isspace() and not after.isdigit()
    if mark.startswith("\\begin"):
        return token == mark.replace("begin", "end", 1)
    return token == _CLOSES.get(mark, mark)
