"""Things that are counted otherwise: "ten working days" where the source has "twelve".

Small numbers in words are asked for by nothing else, since forms bring them and drop them. Here
one counts where the word that follows it is counted in the source as well, by another number, and
one of the two stands in one of the texts alone.
"""

import re
from collections.abc import Iterator

from synth.rephrasing.exact.readings import PartPair, PartReading
from synth.rephrasing.exact.ties import Ties
from synth.rephrasing.facts.quantities import Quantity
from synth.rephrasing.facts.stems import stem
from synth.rephrasing.facts.stopwords import STOPWORDS

_FOLLOWING = re.compile(r"[ -]([^\W\d_]+)")
_YEAR = re.compile(r"1[5-9]\d\d|20\d\d")
MOST_FOLLOWING = 3
"""Words after a number among which the thing is that is counted."""

SHORTEST = 3
"""Letters of a word that says what is counted."""

_CLOCK = frozenset(("uhr", "clock", "heures", "horas", "ore"))
"""Hours of the day, which are counted in two ways."""

_Counted = dict[str, dict[int, Quantity]]
"""By the stem of what is counted: how many of it there are."""


def changed_counts(pair: PartPair, ties: Ties) -> Iterator[str]:
    source, rewrite = pair
    ours, theirs = _counted(source), _counted(rewrite)
    told = set()
    for thing, numbers in theirs.items():
        before = ours.get(thing)
        if not before:
            continue
        new = [q for value, q in numbers.items() if value not in before]
        gone = [q for value, q in before.items() if value not in numbers]
        is_new = any(not source.holds(q, implied=True) for q in new)
        is_gone = any(not rewrite.holds(q, implied=True) for q in gone)
        if new and gone and (is_new or is_gone):
            if not ties.stands_for(new[0], gone[0], counted=True):
                continue
            words = f"the part has {gone[0].text} ({thing}); the rewrite has {new[0].text} instead"
            if (gone[0].value, new[0].value) not in told:
                told.add((gone[0].value, new[0].value))
                yield words


def _counted(reading: PartReading) -> _Counted:
    found: _Counted = {}
    for quantity in reading.quantities:
        value = quantity.value
        if (
            not isinstance(value, int)
            or value == 1
            or _YEAR.fullmatch(quantity.text)
            or quantity.unit
            or reading.only_counts(quantity)
        ):
            continue
        for word in _following(reading.stated, quantity.end):
            key = f"{word} in order" if quantity.is_ordinal else word
            found.setdefault(key, {}).setdefault(value, quantity)
    return found


def _following(text: str, end: int) -> Iterator[str]:
    for _ in range(MOST_FOLLOWING):
        match = _FOLLOWING.match(text, end)
        if match is None:
            return
        word = match[1].lower()
        if word in STOPWORDS or word in _CLOCK:
            return
        if len(word) >= SHORTEST:
            yield stem(word)
        end = match.end()
