"""Whether a row that a tool returned bears out a value that a person mentioned."""

import re
from functools import lru_cache

from synth.offline.reading import Mention
from synth.offline.results import Item, Scalar
from synth.offline.words import plain, stems

_DAY = re.compile(r"\d{4}-\d\d-\d\d")


@lru_cache(maxsize=50_000)
def agreement(mention: Mention, item: Item) -> tuple[float, float]:
    """(by the row's own fields, with what it lay in as well): 1 for the very value, less for a
    part of it, -0.5 where a field of that name holds another date."""
    own = max((_agrees(mention, k, v) for k, v in item.fields.items()), default=0.0)
    near = max((_agrees(mention, k, v) for k, v in item.around.items()), default=0.0)
    against = -0.5 if _contradicts(mention, item) else 0.0
    return own or against, max(own, 0.6 * near) or against


def _agrees(mention: Mention, name: str, value: Scalar) -> float:
    """In [0, 1]; a bare number counts fourfold where its label names the field."""
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
    if len(said) >= 3 and _has_words(text, said):
        return 0.8
    if mention.kind in ("name", "quoted") and " " in text:
        return 0.6 if _has_words(said, text) else 0.0
    return 0.0


def _has_words(text: str, part: str) -> bool:
    """The part stands in the text, not inside a word."""
    at = text.find(part)
    if at < 0:
        return False
    before, after = text[at - 1 : at], text[at + len(part) : at + len(part) + 1]
    return not before.isalnum() and not after.isalnum()


def _contradicts(mention: Mention, item: Item) -> bool:
    if mention.kind not in ("date", "datetime"):
        return False
    label = set(mention.left)
    return any(
        isinstance(v, str) and _DAY.match(v) and set(stems(plain(k))) <= label
        for k, v in item.fields.items()
    )


def _same_number(text: str, value: Scalar) -> bool:
    try:
        return float(text) == float(value)
    except ValueError:
        return False
