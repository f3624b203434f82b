"""Names: people, places, things with capitals inside a sentence, and identifiers of programs.

A word with a capital at the beginning of a sentence says nothing by it, unless it stands with one
inside a sentence too.
"""

import re
from collections.abc import Iterator

from synth.rephrasing.facts.text import ReadText
from synth.rephrasing.facts.units import UNITS

_TOKEN = re.compile(r"(?<!\w)[A-Za-z_][\w.]*(?:-\d[\w-]*)?(?:\(\))?")
_IDENTIFIER = re.compile(
    r"[A-Za-z_]\w+(?:\.[A-Za-z_]\w+)+"  # os.path.join
    r"|[A-Za-z]\w*_\w+|_+[A-Za-z]\w*"  # snake_case, __init__
    r"|[A-Za-z]*[a-z][A-Z]\w*"  # camelCase, TypeError
    r"|[A-Z]{2,}[A-Z0-9]*"  # NASA, HTTP2
    r"|[A-Za-z]+-?\d[\w-]*"  # x86, UTF-8
)
_CAPITALS = re.compile(
    r"(?<![\w.])[A-Z\u00c0-\u00de][^\W\d_]*(?:['\u2019-][^\W\d_]+)*"
    r"(?:[ ](?:(?:of|the|de|van|von|der|la|du|and)[ ])?[A-Z\u00c0-\u00de][^\W\d_]*"
    r"(?:['\u2019-][^\W\d_]+)*){0,7}"
)
_BEGINS = re.compile(r"(?:^|[.!?:;\n|\u2013\u2014(\[\"\u201c\u2018>*_-])[\"'\u201c(*_\s]*$")
_PART = re.compile(r"[^\W_]+")
_NO_NAME = (
    "i a an the this that these those it its he she we you they and or but so if in on at by for"
    " from to of as with when where while what which who why how then there here now not no yes"
    " monday tuesday wednesday thursday friday saturday sunday january february march april may"
    " june july august september october november december mr mrs ms dr prof question answer note"
    " step part q english ok however also because each every all any some many most both one two"
    " definition example theorem proof lemma remark summary conclusion chapter section figure table"
    " etc eg ie true false none null"
)
_NO_NAMES = frozenset(_NO_NAME.split())
"""Words with a capital that name nobody."""

MAX_IDENTIFIER = 200
"""Characters; what is longer is no name."""


def names_of(text: ReadText, language: str = "en") -> dict[str, str]:
    """Name in lower case -> as it stands: one entry for each part of a name and each identifier.

    In German every noun has a capital, so only identifiers are names there.
    """
    found: dict[str, str] = {}
    stated = text.stated if language != "de" else ""
    inside: dict[str, str] = {}
    at_start: dict[str, str] = {}
    for words, begins in _capitalised(stated):
        for index, word in enumerate(words):
            alone_at_start = begins and index == 0
            (at_start if alone_at_start else inside).setdefault(_key(word), word)
    found |= {key: word for key, word in inside.items() if is_name(key)}
    found |= {key: word for key, word in at_start.items() if key in found}
    for identifier in identifiers_of(text):
        found.setdefault(_key(identifier), identifier)
    return found


def identifiers_of(text: ReadText) -> Iterator[str]:
    for token in dict.fromkeys(_TOKEN.findall(text.stated)):
        if token.isalpha() and token.islower():
            continue
        word = token.rstrip(".")
        called = word.endswith("()")
        if len(word) <= MAX_IDENTIFIER and (called or _IDENTIFIER.fullmatch(word)):
            yield word.removesuffix("()")
    for span in text.spans:
        if len(span) <= MAX_IDENTIFIER:
            yield span


def is_name(key: str) -> bool:
    return len(key) > 1 and not {key, key.removesuffix("s")} & (_NO_NAMES | UNITS.keys())


def stands_in(key: str, text: ReadText) -> bool:
    """Whether the text holds the name in any case: all of its parts, as words of their own."""
    parts = _PART.findall(key)
    vocabulary = text.vocabulary
    if not parts:
        return key in text.text
    return all(
        part in vocabulary or part + "s" in vocabulary or part.removesuffix("s") in vocabulary
        for part in parts
    )


def _capitalised(stated: str) -> Iterator[tuple[list[str], bool]]:
    """(words with capitals that follow each other, whether a sentence begins with them)."""
    for match in _CAPITALS.finditer(stated):
        words = [word for word in match[0].split(" ") if word[:1].isupper()]
        start = match.start()
        yield words, _BEGINS.search(stated, max(0, start - 4), start) is not None


def _key(word: str) -> str:
    return word.removesuffix("'s").removesuffix("\u2019s").strip("'\u2019").casefold()
