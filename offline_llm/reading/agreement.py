"""Whether a row that a tool returned bears out a value that a person mentioned."""

import re
from functools import lru_cache

from offline_llm.reading.reading import Mention
from offline_llm.reading.results import ResultItem, Scalar
from offline_llm.reading.words import plain, stems

_DAY = re.compile(r"\d{4}-\d\d-\d\d")


@lru_cache(maxsize=50_000)
def agreement(mention: Mention, item: ResultItem) -> tuple[float, float]:
    """(by the row's own fields, with what it lay in as well): 1 for the very value, less for a
    part of it, -0.5 where a field of that name holds another date."""
    own = max((_agrees(mention, k, v) for k, v in item.fields.items()), default=0.0)
    near = max((_agrees(mention, k, v) for k, v in item.around.items()), default=0.0)
    against = -0.5 if mention.kind in ("date", "datetime") and _has_other(mention, item) else 0.0
    return own or against, max(own, 0.6 * near) or against


def _has_other(mention: Mention, item: ResultItem) -> bool:
    dated = [k for k, v in item.fields.items() if isinstance(v, str) and _DAY.match(v)]
    return any(set(stems(plain(name))) <= set(mention.left) for name in dated)


def _agrees(mention: Mention, name: str, value: Scalar) -> float:
    """In [0, 1]; a bare number counts fourfold where its label names the field."""
    if isinstance(value, bool):
        return 0.0
    text, said, kind = str(value).lower(), mention.text.lower(), mention.kind
    if kind == "number":
        labels = set(stems(plain(name))) & {*mention.left[-4:], *mention.right[:1]}
        return (4.0 if labels else 1.0) if _same_number(said, text) else 0.0
    if text == said:
        return 1.0
    if kind == "date":
        return float(text[:10] == said)
    if kind == "datetime":
        return 1.0 if text[:16] == said[:16] else 0.35 * (text[:10] == said[:10])
    if kind == "time":
        return float(text[11:16] == said)
    if len(said) >= 3 and _has_words(text, said):
        return 0.8
    return 0.6 if kind in ("name", "quoted") and " " in text and _has_words(said, text) else 0.0


def _has_words(text: str, part: str) -> bool:
    """The part stands in the text, not inside a word."""
    at = text.find(part)
    before, after = text[max(0, at - 1) : at], text[at + len(part) : at + len(part) + 1]
    return at >= 0 and not before.isalnum() and not after.isalnum()


def _same_number(a: str, b: str) -> bool:
    try:
        return float(a) == float(b)
    except ValueError:
        return False
