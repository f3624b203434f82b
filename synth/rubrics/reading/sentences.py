"""Where the sentences of a reply begin and end: a sentence, a bullet line, a row of a table, a
fenced block as a whole."""

import re

from synth.rubrics.reading.locales import Locale

_END = re.compile(
    r"[.!?\u2026]+[\"'\u201d\u2019)\]*_]*(?=\s|[\u4e00-\u9fff])|[\u3002\uff01\uff1f]+[\u201d\u2019)]*|\n+"
)
_FENCED = re.compile(r"^[ \t]*```.*?(?:^[ \t]*```[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_LAST_WORD = re.compile(r"[\w.\u00b0\u00ba]+$")
_ORDINAL = re.compile(r"\d{1,2}(?:\.\d{1,2})?")
_NUMBERED = re.compile(r"(?:^|\n)[ \t]*\**\d{1,2}$")


def sentences_in(text: str, table: Locale) -> list[tuple[int, int]]:
    """(start, end) of every sentence that has a letter or a digit, in order."""
    found: list[tuple[int, int]] = []
    begin = 0
    fences = [fence.span() for fence in _FENCED.finditer(text)]
    for match in _END.finditer(text):
        if any(start < match.start() < end - 1 for start, end in fences):
            continue
        if match[0][0] == "." and _goes_on(text, begin, match, table):
            continue
        found.append((begin, match.end()))
        begin = match.end()
    found.append((begin, len(text)))
    return [trimmed for span in found if (trimmed := _trimmed(text, *span))]


def _goes_on(text: str, begin: int, stop: re.Match[str], table: Locale) -> bool:
    """Whether the full stop ends an abbreviation, an ordinal or a list number, and no sentence."""
    before = text[begin : stop.start()]
    if len(stop[0].strip("*_")) > 1 or (word := _LAST_WORD.search(before)) is None:
        return False
    after = text[stop.end() : stop.end() + 24].lstrip(" ")
    if _NUMBERED.search(text[: stop.start()][-12:]):
        return True
    last = word[0].lower()
    if last in table.titles:
        return last != "no" or after[:1].isdigit()
    if last in table.abbreviations or (len(last) == 1 and last.isalpha() and last != "i"):
        return not after[:1].isupper() or len(last) == 1
    if table.code == "de" and _ORDINAL.fullmatch(last):
        return after[:1].islower() or (re.match(r"\w*", after.lower()) or [""])[0] in table.months
    return False


def _trimmed(text: str, start: int, end: int) -> tuple[int, int] | None:
    part = text[start:end]
    if not any(map(str.isalnum, part)):
        return None
    return start + len(part) - len(part.lstrip()), end - (len(part) - len(part.rstrip()))
