"""Which of the items that tools returned is the one that a person means.

Every value the person mentioned that an item carries speaks for the item. An item that is spoken
for lends its weight to the items that refer to it by its identifier.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from synth.offline.filling import Words
from synth.offline.reading import Mention
from synth.offline.results import Item, Scalar
from synth.offline.toolbox import Param
from synth.offline.words import alike, plain, stems

_WEIGHT = {
    "id": 4.0, "email": 4.0, "url": 4.0, "datetime": 3.0, "quoted": 3.0, "name": 3.0, "path": 3.0,
    "zone": 2.0, "date": 2.0, "time": 1.0, "number": 0.4,
}  # fmt: skip
_LOOKS_LIKE_ID = re.compile(r"^[A-Za-z]+[-_]\d+$|^[0-9a-f]{7,40}$")
_SPOKEN_FOR = 2.0
"""Support from which an item lends weight to those that refer to it."""


@dataclass(frozen=True)
class Candidate:
    value: Scalar
    score: float
    hard: float
    """The part of the score that comes from values the person said."""
    item: Item


_NONE = Candidate("", 0.0, 0.0, Item(0, "", {}, {}))


@dataclass(frozen=True)
class Evidence:
    """What speaks for items when a value of `param` is looked for."""

    words: Words
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
        label = mention.left
        own = self.param.name_words | self.nouns
        known = [word for word in label if word in own or word in self.others | self.about]
        if not known:
            return 1.0
        if known[0] in self.others:
            return 0.2
        return 1.5 if any(word in own for word in known) else 0.3

    @cached_property
    def said(self) -> frozenset[str]:
        return frozenset(stems(self.words.text))

    @cached_property
    def strong(self) -> tuple[Mention, ...]:
        """Clues that can single out an item."""
        return tuple(m for m in self.clues if _WEIGHT[m.kind] * self.weight(m) >= 1.0)

    def unexplained(self, items: list[Item]) -> list[Mention]:
        """Strong clues that no item seen so far bears out."""
        return [
            mention
            for mention in self.strong
            if not any(_agrees(mention, k, v) for i in items for k, v in i.fields.items())
        ]

    def support(self, item: Item, lent: dict[str, float]) -> tuple[float, float]:
        """What speaks for the item: values that were said, and words in passing."""
        hard = soft = 0.0
        for mention in self.clues:
            own = max((_agrees(mention, k, v) for k, v in item.fields.items()), default=0.0)
            near = max((_agrees(mention, k, v) for k, v in item.around.items()), default=0.0)
            agrees = max(own, 0.6 * near) or -0.5 * _contradicts(mention, item)
            hard += _WEIGHT[mention.kind] * agrees * self.weight(mention)
        for name, value in (item.around | item.fields).items():
            if isinstance(value, str):
                hard += lent.get(value, 0.0) if value != primary_id(item) else 0.0
                soft += self._in_words(name, value)
        return hard, min(soft, 1.5)

    def _in_words(self, name: str, value: str) -> float:
        """A short value in lower case, such as a state or a kind, that the person used."""
        wanted = stems(plain(value)) if len(value) < 30 and value == value.lower() else ()
        if not wanted or any(c.isdigit() for c in value) or not set(wanted) <= self.said:
            return 0.0
        return 0.9 if set(stems(plain(name))) & self.said else 0.5

    def lent(self, items: list[Item]) -> dict[str, float]:
        """What items that are spoken for lend to those that refer to them, by identifier."""
        lent: dict[str, float] = {}
        for _ in range(3):
            gained: dict[str, float] = {}
            for item in items:
                support, key = self.support(item, lent)[0], primary_id(item)
                if key and support >= _SPOKEN_FOR:
                    gained[key] = max(gained.get(key, 0.0), min(3.0, 0.8 * support))
            if gained == lent:
                break
            lent = gained
        return lent

    def candidates(self, items: list[Item]) -> list[Candidate]:
        """Values that can stand for the parameter, the best supported first."""
        lent = self.lent(items)
        best: dict[Scalar, Candidate] = {}
        for item in items:
            hard, soft = self.support(item, lent)
            own = self.support(Item(item.call, item.tool, item.fields, {}), lent)[0]
            for name, value in item.fields.items():
                fits = self._stands_for(name, value, item) if hard + soft > 0.35 else 0.0
                if fits and value != primary_id(item):  # what the row refers to, not what it is
                    fits = 0.4 * fits if own >= 2.0 else 0.0
                candidate = Candidate(value, (hard + soft) * fits, hard * fits, item)
                if fits and candidate.score > best.get(value, _NONE).score:
                    best[value] = candidate
        return sorted(best.values(), key=lambda c: (-c.score, str(c.value)))

    def _stands_for(self, name: str, value: Scalar, item: Item) -> float:
        """How well a field of an item can be the parameter's value, in [0, 1]."""
        param = self.param
        if param.prefix and not str(value).startswith(param.prefix):
            return 0.0
        if name == param.name or f"{name}s" == param.name:
            return 1.0
        first = value == primary_id(item)
        if param.prefix:
            return 0.9 if first else 0.3
        words = stems(plain(name))
        if words and words[-1] == "id" and len(words) > 1:
            return 0.8 if any(alike(words[-2], noun) for noun in self.nouns) else 0.0
        about = any(alike(a, b) for a in stems(plain(item.tool)) for b in self.nouns)
        return 0.7 if about and first else 0.0


def primary_id(item: Item) -> str:
    """The first field that is an identifier by its name or its form, else empty."""
    for name, value in item.fields.items():
        if name.lower() == "id" or (len(name) > 2 and name.lower().endswith("id")):
            return str(value)
        if isinstance(value, str) and _LOOKS_LIKE_ID.match(value):
            return value
    return ""


def _agrees(mention: Mention, name: str, value: Scalar) -> float:
    """How far an item's value is the mentioned one, in [0, 1]; for bare numbers by label only."""
    if isinstance(value, bool):
        return 0.0
    if mention.kind == "number":
        if not _same_number(mention.text, value):
            return 0.0
        labels = set(stems(plain(name)))
        return 1.0 if not labels & {*mention.left[-4:], *mention.right[:1]} else 4.0
    text, said = str(value).lower(), mention.text.lower()
    if text == said:
        return 1.0
    if mention.kind == "date":
        return 1.0 if text[:10] == said else 0.0
    if mention.kind == "datetime":
        return 1.0 if text[:16] == said[:16] else 0.35 if text[:10] == said[:10] else 0.0
    if mention.kind == "time":
        return 1.0 if text[11:16] == said else 0.0
    if len(said) >= 3 and re.search(rf"(?<!\w){re.escape(said)}(?!\w)", text):
        return 0.8
    if mention.kind in ("name", "quoted") and len(text) >= 4 and " " in said:
        return 0.6 if re.search(rf"(?<!\w){re.escape(text)}(?!\w)", said) else 0.0
    return 0.0


def _contradicts(mention: Mention, item: Item) -> bool:
    """A field that the words before the mention name holds another date."""
    if mention.kind not in ("date", "datetime"):
        return False
    label = set(mention.left)
    return any(
        isinstance(v, str) and re.match(r"\d{4}-\d\d-\d\d", v) and set(stems(plain(k))) <= label
        for k, v in item.fields.items()
    )


def _same_number(text: str, value: Scalar) -> bool:
    try:
        return float(text) == float(value)
    except ValueError:
        return False
