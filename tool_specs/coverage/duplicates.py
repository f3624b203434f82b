"""Exact and near duplicates among tools of different servers: forks list the same tool again.

Near: Jaccard similarity of word 3-gram shingles of at least 0.8. Words, because "create" for
"delete" in a sentence changes few characters and what the tool does. All pairs that reach the
threshold are found, none is missed: two sets that similar share one of the rarest fifth of their
shingles (prefix filter: Chaudhuri, Ganti, Kaushik 2006), which an index of those finds.

Tools of one server are never compared: a server means its tools to be different.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from records.digest import digest
from records.tables.schemas import Row

THRESHOLD = 0.8
GRAM = 3

Shingles = frozenset[tuple[str, ...]]

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
"""Words of text and of names: get_userId -> get, user, Id. Other scripts: a run is a word."""


class Repeat(NamedTuple):
    of: str
    """tool_id of the tool that stays."""
    exact: bool


def shingles(row: Row) -> Shingles:
    """What a model reads of the tool: name, description, parameters by name."""
    return shingles_of(texts(row))


def shingles_of(parts: Iterable[str]) -> Shingles:
    """Runs of words in the texts, one after the other; a shorter text is one run."""
    words = [word.lower() for text in parts for word in _WORD.findall(text)]
    grams = {tuple(words[i : i + GRAM]) for i in range(len(words) - GRAM + 1)}
    return frozenset(grams or {tuple(words)})


def texts(row: Row) -> Iterator[str]:
    yield row["name"]
    yield row["description"]
    yield from _parameters(row["input_schema"])


def _parameters(schema: Any) -> Iterator[str]:
    """Names, types, descriptions and choices of parameters, nested ones too, in order of names."""
    if not isinstance(schema, Mapping):
        return
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        for name in sorted(properties):
            yield name
            member = properties[name]
            if isinstance(member, Mapping):
                yield str(member.get("type", ""))
                yield str(member.get("description", ""))
                yield from (str(choice) for choice in member.get("enum", ()))
            yield from _parameters(member)
    yield from _parameters(schema.get("items"))


def jaccard(a: Shingles, b: Shingles) -> float:
    """|a & b| / |a | b|, and 0 for two empty sets."""
    shared = len(a & b)
    return shared / (len(a) + len(b) - shared) if a or b else 0.0


def content_of(row: Row) -> str:
    """Equal for tools that a model cannot tell apart."""
    return digest("content", row["name"], row["description"], row["input_schema"])


def preference(row: Row) -> tuple[bool, int, bool, str, str]:
    """Smallest first: described, better documented, of a known licence. Then by server, so that of
    two forks one keeps its tools together, and by id."""
    words = sum(len(_WORD.findall(text)) for text in texts(row))
    return (
        not row["description"].strip(),
        -words,
        row["license"] == "unknown",
        row["server"],
        row["tool_id"],
    )


def repeats(rows: Sequence[Row], *, kept: Sequence[Row] = ()) -> dict[str, Repeat]:
    """tool_id -> what it repeats, for each of `rows` that repeats one of `kept` or of `rows`.

    Independent of the order of `rows`: the best by `preference` of what is alike stays. `kept`
    stays whatever it is. A tool is compared with those that stay, so that a chain of small
    changes does not take its two ends for one.
    """
    ordered = [*sorted(kept, key=preference), *sorted(rows, key=preference)]
    held = {row["tool_id"] for row in kept}
    sets = [shingles(row) for row in ordered]
    contents = [content_of(row) for row in ordered]
    counts = Counter(gram for grams in sets for gram in grams)
    index: dict[tuple[str, ...], list[int]] = {}
    found: dict[str, Repeat] = {}
    for i, row in enumerate(ordered):
        rarest = sorted(sets[i], key=lambda gram: (counts[gram], gram))
        prefix = rarest[: len(rarest) - _at_least(len(rarest)) + 1]
        if row["tool_id"] not in held:
            alike = {j for gram in prefix for j in index.get(gram, ())}
            near = [
                (contents[i] != contents[j], -jaccard(sets[i], sets[j]), j)
                for j in alike
                if ordered[j]["server"] != row["server"] and is_near(sets[i], sets[j])
            ]
            if near:
                differs, _, j = min(near)
                found[row["tool_id"]] = Repeat(ordered[j]["tool_id"], exact=not differs)
                continue
        for gram in prefix:
            index.setdefault(gram, []).append(i)
    return found


def _at_least(size: int) -> int:
    """Shingles that a set of this size shares with any that is near: ceil(threshold * size)."""
    return -int(-THRESHOLD * size // 1)


def is_near(a: Shingles, b: Shingles) -> bool:
    small, large = sorted((len(a), len(b)))
    return small >= THRESHOLD * large and jaccard(a, b) >= THRESHOLD
