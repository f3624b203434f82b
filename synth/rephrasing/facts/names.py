"""Names: people, places, things with capitals inside a sentence, and identifiers of programs.

A word with a capital at the beginning of a sentence says nothing by it, unless it stands with one
inside a sentence too.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from synth.rephrasing.facts.number_words import is_number_word
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
_BEGINS = re.compile(
    r"(?:^|[.!?:;\n|\u00bf\u00a1\u2013\u2014(\[\"\u201c\u00ab\u201e\u2018>*_-])[\"'\u201c\u00ab\u201e(*_\s]*$"
)
_TITLE = re.compile(r"\b(?:Dr|Mr|Mrs|Ms|St|Prof|Mme|Sr|Sra|[A-Z])\. $")
_ROMAN = re.compile(r"[IVXL]{2,}(?:e|er)?")
_PART = re.compile(r"[^\W_]+")
_NO_NAME = (
    "i a an the this that these those it its he she we you they and or but so if in on at by for"
    " from to of as with when where while what which who why how then there here now not no yes"
    " monday tuesday wednesday thursday friday saturday sunday january february march april may"
    " june july august september october november december mr mrs ms dr prof question answer note"
    " step part q english ok however also because each every all any some many most both one two"
    " definition example theorem proof lemma remark summary conclusion chapter section figure table"
    " etc eg ie true false none null madame mme monsieur mlle frau herr se\u00f1or se\u00f1ora don"
    " do\u00f1a lady lord sir miss professor doctor dear vous tu nous ch\u00e8re cher sehr liebe"
    " lieber sie ihr ihre qu\u00e9 qui\u00e9n c\u00f3mo cu\u00e1ndo d\u00f3nde cu\u00e1l"
    " cu\u00e1nto first second third"
)
_NO_NAMES = frozenset(_NO_NAME.split()) | UNITS.keys()
"""Words with a capital that name nobody."""

MAX_IDENTIFIER = 200
"""Characters; what is longer is no name."""


@lru_cache(maxsize=128)
def names_of(text: ReadText, language: str = "en") -> dict[str, str]:
    """Name in lower case -> as it stands: one entry for each part of a name and each identifier.

    In German every noun has a capital, so only identifiers are names there.
    """
    runs = name_runs(text, language) if language != "de" else ()
    found = {_key(word): word for run in reversed(runs) for word in reversed(run)}
    for identifier in identifiers_of(text):
        found.setdefault(_key(identifier), identifier)
    return found


@lru_cache(maxsize=256)
def name_runs(text: ReadText, language: str) -> list[list[str]]:
    """Names of several words and of one, in order: words with a capital that follow each other.

    In German, where every noun has one, a name is two of them in a row or what follows a title.
    """
    capitalised = list(_capitalised(text.stated))
    if language == "de":
        capitalised = [one for one in _close(capitalised) if len(one.words) > 1 or one.is_titled]
    inside = {
        _key(word) for words, begins, _ in capitalised for word in words[1 if begins else 0 :]
    }
    runs = (
        [word for word in words if word[:1].isupper() and _key(word) in inside and _is_name(word)]
        for words, _, _ in capitalised
    )
    return [run for run in runs if run]


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


def _is_name(word: str) -> bool:
    key = _key(word)
    return is_name(key) and not _ROMAN.fullmatch(word) and not is_number_word(key, "en")


def is_name(key: str) -> bool:
    return len(key) > 1 and _NO_NAMES.isdisjoint((key, key.removesuffix("s")))


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


class _Capitalised(NamedTuple):
    """Words with capitals that follow each other, and what joins them, such as "of"."""

    words: list[str]
    begins: bool
    """Whether a sentence begins with them."""
    is_titled: bool
    """Whether they follow a title with a full stop."""


def _capitalised(stated: str) -> Iterator[_Capitalised]:
    for match in _CAPITALS.finditer(stated):
        start = match.start()
        begins = _BEGINS.search(stated, max(0, start - 4), start) is not None
        is_titled = begins and _TITLE.search(stated, max(0, start - 6), start) is not None
        yield _Capitalised(match[0].split(" "), begins and not is_titled, is_titled)


def _close(capitalised: list[_Capitalised]) -> Iterator[_Capitalised]:
    """Cut where a word without a capital joins them."""
    for words, begins, is_titled in capitalised:
        run: list[str] = []
        for word in (*words, ""):
            if word[:1].isupper():
                run.append(word)
            elif run:
                yield _Capitalised(run, begins, is_titled)
                run, begins, is_titled = [], False, False


def _key(word: str) -> str:
    return word.removesuffix("'s").removesuffix("\u2019s").strip("'\u2019").casefold()
