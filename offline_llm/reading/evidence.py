"""Which of the items that tools returned is the one that a person means.

Every value the person mentioned that an item carries speaks for the item. An item that is spoken
for lends its weight to the items that refer to it by its identifier.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from offline_llm.reading.agreement import agreement
from offline_llm.reading.filling import Words
from offline_llm.reading.reading import Mention
from offline_llm.reading.results import ResultItem, Scalar
from offline_llm.reading.toolbox import Param
from offline_llm.reading.words import alike, plain, stems

_WEIGHT = {
    "id": 4.0, "email": 4.0, "url": 4.0, "datetime": 3.0, "quoted": 3.0, "name": 3.0, "path": 3.0,
    "zone": 2.0, "word": 1.2, "date": 2.0, "time": 1.0, "number": 0.4,
}  # fmt: skip
_SPOKEN_FOR = 2.0
"""Support from which an item lends weight to those that refer to it."""


@dataclass(frozen=True)
class ValueCandidate:
    value: Scalar
    score: float
    hard: float
    """The part of the score that comes from values the person said."""
    item: ResultItem


_NONE = ValueCandidate("", 0.0, 0.0, ResultItem("", {}, {}))


@dataclass(frozen=True)
class Evidence:
    """What speaks for items when a value of `param` is looked for."""

    words: Words
    items: list[ResultItem]
    """Rows of all results so far."""
    param: Param
    nouns: frozenset[str]
    """What the parameter is an identifier of, relatives by prefix included."""
    others: frozenset[str]
    """Stems of the goal's other identifiers: what is said of them is not said of this one."""
    about: frozenset[str]
    """Stems of the identifiers that this one is looked up for."""
    clues: tuple[Mention, ...]
    """What was said beside the goal's plain values: it must describe what is looked for."""
    taken: tuple[Any, ...] = ()
    """The goal's plain values: they are no filters of a look-up."""

    def weight(self, mention: Mention) -> float:
        """How much a mention is about this identifier, by the noun phrase before it."""
        own = self.param.name_words | self.nouns
        known = [w for w in mention.left if w in own or w in self.others or w in self.about]
        if not known:
            return 1.0
        if known[0] in self.others:
            return 0.2
        return 1.5 if any(word in own for word in known) else 0.3

    @cached_property
    def weighed(self) -> list[tuple[Mention, float]]:
        return [(m, _WEIGHT[m.kind] * self.weight(m)) for m in self.clues]

    @property
    def speaks(self) -> bool:
        """Some clue may be about this identifier."""
        return any(weight >= 0.5 * _WEIGHT[m.kind] for m, weight in self.weighed)

    @cached_property
    def said(self) -> frozenset[str]:
        return frozenset(stems(self.words.text))

    @cached_property
    def strong(self) -> tuple[Mention, ...]:
        """Clues that can single out an item."""
        return tuple(mention for mention, weight in self.weighed if weight >= 1.0)

    @cached_property
    def unexplained(self) -> list[Mention]:
        """Strong clues that no item seen so far bears out."""
        return [m for m in self.strong if not any(agreement(m, i)[0] > 0 for i in self.items)]

    def _hard(self, item: ResultItem, *, own: bool = False) -> float:
        """What the values that were said speak for the item, or for its own fields alone."""
        side = 0 if own else 1
        return sum(weight * agreement(mention, item)[side] for mention, weight in self.weighed)

    def _borrowed(self, item: ResultItem, *, own: bool = False) -> float:
        """What the rows that it refers to lend it."""
        names = item.refers if own else item.refers + item.lies_in
        return sum(self.lent.get(v, 0.0) for v in names if v != item.key) if self.lent else 0.0

    def _soft(self, item: ResultItem) -> float:
        """Words in passing that are the row's states and kinds."""
        pairs = (item.around | item.fields).items()
        return min(1.5, sum(self._in_words(k, v) for k, v in pairs if isinstance(v, str)))

    def _in_words(self, name: str, value: str) -> float:
        """A short value in lower case, such as a state or a kind, that the person used."""
        wanted = stems(plain(value)) if len(value) < 30 and value == value.lower() else ()
        if not wanted or any(c.isdigit() for c in value) or not set(wanted) <= self.said:
            return 0.0
        return 0.9 if set(stems(plain(name))) & self.said else 0.5

    @cached_property
    def lent(self) -> dict[str, float]:
        """What items that are spoken for lend to those that refer to them, by identifier."""
        rows = [(item, self._hard(item)) for item in self.items if item.key]
        lent: dict[str, float] = {}
        for _ in range(3):
            gained: dict[str, float] = {}
            for item, hard in rows:
                names = {v for v in (*item.refers, *item.lies_in) if v != item.key}
                support = hard + sum(lent.get(value, 0.0) for value in names) if lent else hard
                if support >= _SPOKEN_FOR:
                    gained[item.key] = max(gained.get(item.key, 0.0), min(3.0, 0.8 * support))
            if gained == lent:
                break
            lent = gained
        return lent

    @cached_property
    def candidates(self) -> list[ValueCandidate]:
        """Values that can stand for the parameter, the best supported first."""
        best: dict[Scalar, ValueCandidate] = {}
        for item in self.items:
            stand = [(v, f) for k, v in item.fields.items() if (f := self._stands_for(k, v, item))]
            if not stand:
                continue
            hard, soft = self._hard(item) + self._borrowed(item), self._soft(item)
            for value, fits in stand if hard + soft > 0.35 else ():
                if value != item.key:  # what the row refers to, not what it is
                    own = self._hard(item, own=True) + self._borrowed(item, own=True)
                    fits = 0.4 * fits if own >= _SPOKEN_FOR else 0.0
                candidate = ValueCandidate(value, (hard + soft) * fits, hard * fits, item)
                if fits and candidate.score > best.get(value, _NONE).score:
                    best[value] = candidate
        return sorted(best.values(), key=lambda c: (-c.score, str(c.value)))

    def _stands_for(self, name: str, value: Scalar, item: ResultItem) -> float:
        """How well a field of an item can be the parameter's value, in [0, 1]."""
        param = self.param
        if param.prefix and not str(value).startswith(param.prefix):
            return 0.0
        if name == param.name or f"{name}s" == param.name:
            return 1.0
        first = value == item.key
        if param.prefix:
            return 0.9 if first else 0.3
        words = stems(plain(name))
        if words and words[-1] == "id" and len(words) > 1:
            return 0.8 if any(alike(words[-2], noun) for noun in self.nouns) else 0.0
        about = any(alike(a, b) for a in stems(plain(item.tool)) for b in self.nouns)
        return 0.7 if about and first else 0.0
