"""Phrases that say the same, and the company in which they do not."""

import re
import tomllib
from pathlib import Path
from random import Random

_DATA = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
INVENTED: list[str] = _DATA["invented"]
ENGLISH = frozenset(_DATA["english"])
_TABLE: dict[str, list[str]] = _DATA["exchanged"]
_BEFORE = {old: tuple(words) for old, words in _DATA["unsafe_before"].items()}
_AFTER = {old: re.compile(rf" (?:{words})\b", re.I) for old, words in _DATA["unsafe_after"].items()}
_ONLY_FIRST = frozenset({"otherwise", "so"})
"""Words that mean something else where they begin no clause: is otherwise the same, so deep."""

_CLAUSE_BEGINS = re.compile(r"(?:^|[.,;:!?)]) ?$")

_BY_FIRST_WORD: dict[str, list[str]] = {}
for _old in sorted(_TABLE, key=len, reverse=True):
    _BY_FIRST_WORD.setdefault(_old.partition(" ")[0], []).append(_old)
ORDINARY = frozenset(
    phrase.partition(" ")[0] for old, new in _TABLE.items() for phrase in (old, *new)
) | frozenset(_DATA["first_words"])
"""Words that begin a phrase here or a sentence: none of them is a name."""

_WORD = re.compile(r"(?<![\w'-])[A-Za-z]+")
_GOES_ON = re.compile(r"[\w'-]")
_LONGEST_BEFORE = 12
_FEW_WORDS = 5


def exchanged(text: str, rng: Random) -> str:
    """Most of the phrases that the table knows are exchanged, each place once. A capital inside the
    sentence may be part of a title, which stays; so does a sentence of few words."""
    words = list(_WORD.finditer(text))
    if len(words) < _FEW_WORDS:
        return text
    said: list[str] = []
    at = 0
    for word in words:
        start = word.start()
        old = _phrase_at(text, start, word[0].lower()) if start >= at else None
        is_title = start > 0 and word[0][0].isupper()
        if old is None or is_title or rng.random() < 0.15:
            continue
        new = rng.choice(_TABLE[old])
        said += [text[at:start], upper_first(new) if word[0][0].isupper() else new]
        at = start + len(old)
    return "".join([*said, text[at:]])


def _phrase_at(text: str, start: int, first: str) -> str | None:
    """The longest phrase of the table that begins here, None where none is safe."""
    for old in _BY_FIRST_WORD.get(first, ()):
        end = start + len(old)
        if text[start:end].lower() != old or _GOES_ON.match(text, end):
            continue
        before = text[max(0, start - _LONGEST_BEFORE) : start].lower()
        if old in _ONLY_FIRST and not _CLAUSE_BEGINS.search(before):
            continue
        after = _AFTER.get(old)
        if not before.endswith(_BEFORE.get(old, ())) and not (after and after.match(text, end)):
            return old
    return None


def upper_first(text: str) -> str:
    return text[:1].upper() + text[1:]
