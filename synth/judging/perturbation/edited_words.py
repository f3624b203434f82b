"""Which words of a reply an edit changed, and whether a quotation names them.

Words are compared without case, spacing and marks; where a script writes without spaces, sign by
sign.
"""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

_SIGN = "\u3040-\u30ff\u3400-\u9fff\u0e00-\u0e7f"
_WORD = re.compile(rf"[{_SIGN}]|[^\W{_SIGN}]+")
_LEFT_OUT = re.compile(r"\.{3}|\u2026")
_ENDED = re.compile(r"[.!?\u2026\u3002\uff01\uff1f)\]\"'\u00bb\u201d*_`|]\s*$")


class EditedWords(NamedTuple):
    before: list[str]
    after: list[str]
    removed: frozenset[int]
    """Places in `before`."""
    added: frozenset[int]
    """Places in `after`, those of words that the edit made wrong included."""
    seam: frozenset[int] = frozenset()
    """The last place in `after` where the edit has it break off in the middle of a sentence: a
    reader can quote no words that are wrong then, and quotes the last ones."""

    @property
    def only_removed(self) -> bool:
        return bool(self.removed) and not self.added

    def are_named_in(self, text: str) -> bool:
        """Whether the text quotes what was added or removed, part for part where it leaves words
        out."""
        for part in map(_words, _LEFT_OUT.split(text)):
            if _meets(part, self.after, self.added | self.seam) or _meets(
                part, self.before, self.removed
            ):
                return True
        return False


def edited_words(before: str, after: str, wrong: str = "") -> EditedWords:
    """`wrong`: words of `after` that are wrong though they may stand in `before`, too."""
    old, new = _words(before), _words(after)
    removed: set[int] = set()
    added: set[int] = set()
    for tag, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            removed.update(range(i, j))
            added.update(range(k, m))
    part = _words(wrong)
    for start in _places(part, new):
        added.update(range(start, start + len(part)))
    broken = new and len(old) - 1 in removed and not _ENDED.search(after)
    seam = frozenset([len(new) - 1] if broken else [])
    return EditedWords(old, new, frozenset(removed), frozenset(added), seam)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _meets(part: Sequence[str], words: Sequence[str], places: frozenset[int]) -> bool:
    return any(
        not places.isdisjoint(range(start, start + len(part))) for start in _places(part, words)
    )


def _places(part: Sequence[str], words: Sequence[str]) -> Iterator[int]:
    """Where the part begins in the words; nowhere for an empty one."""
    last = len(words) - len(part) if part else -1
    for start in range(last + 1):
        if words[start] == part[0] and list(words[start : start + len(part)]) == list(part):
            yield start
