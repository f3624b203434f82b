"""Whether a catalogue of tools looks like those of real servers: figures of names and shapes.

An idea is what a tool does without what it does it to: the words of its name, those of its domain
masked and what follows a preposition cut off. `list_overdue_boats_by_kind` and
`list_overdue_loans` are one idea.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from records.tables.schemas import Row
from tool_specs.coverage.coverage import ENOUGH, nearest, vectors_of
from tool_specs.toolsets.nouns import singular, words_of

REAL = {
    "object_params": 0.030,
    "object_list_params": 0.0135,
    "enum_params": 0.048,
    "default_params": 0.22,
    "optional_params": 0.51,
    "without_params": 0.15,
    "name_chars": 18.0,
    "names_over_40": 0.013,
    "joined_names": 0.006,
    "within_median": 0.49,
    "within_near": 0.21,
}
"""Published figures of 6,044 tools of real servers; the other figures of them are not known. A list
of one's own, given by `--real`, has all of them counted."""

TOP = 50
LONG_NAME = 40
"""Characters."""
NEAR = 0.3
"""Cosine distance from which two tools are much the same."""

_CUTS = frozenset(("by", "with", "for", "of", "from", "in", "on", "to", "where", "and", "per"))


class CountedTool(NamedTuple):
    """A tool as far as its looks go."""

    place: str
    """Its domain or server."""
    name: str
    description: str
    input_schema: Mapping[str, Any]
    masked: frozenset[str]
    """Words, in the singular, that are of the place and not of the idea."""

    @property
    def idea(self) -> str:
        words: list[str] = []
        for number, word in enumerate(words_of(self.name)):
            if number and word in _CUTS:
                break
            own = "*" if number and singular(word) in self.masked else word
            words += [own] if words[-1:] != [own] else []
        return "_".join(words)

    @property
    def row(self) -> Row:
        return {
            "name": self.name,
            "description": self.description,
            "input_schema": dict(self.input_schema),
        }


def words_of_domain(names: Iterable[str]) -> frozenset[str]:
    """What is masked of a domain's tools. `names`: its own, and those of its entities."""
    return frozenset(singular(word) for name in names for word in words_of(name))


def is_joined(name: str) -> bool:
    """Whether the name is of two jobs in one."""
    return "_and_" in name or "_with_" in name


def num_params(schema: Mapping[str, Any]) -> tuple[int, int]:
    """Parameters of a tool, and how many of them are enums."""
    specs = [spec for spec, _ in _params(schema)]
    return len(specs), sum("enum" in spec for spec in specs)


def words_to_mask(place: str, names: Collection[str]) -> frozenset[str]:
    """Where nothing is known of a place but its tools: the words of its own name, and those that
    stand in several tools' names behind the verb."""
    behind = Counter(
        word for name in names for word in {singular(w) for w in words_of(name)[1:]} - _CUTS
    )
    own = {singular(word) for word in words_of(place)}
    return frozenset(own | {word for word, number in behind.items() if number > 1})


def figures(tools: Sequence[CountedTool]) -> dict[str, float]:
    """Name of a figure -> value; shares from 0 to 1. Distances are left out for few tools."""
    if not tools:
        return {}
    ideas = Counter(tool.idea for tool in tools)
    places_of: dict[str, set[str]] = {}
    for tool in tools:
        places_of.setdefault(tool.idea, set()).add(tool.place)
    repeated = sum(len(places_of[tool.idea]) > 1 for tool in tools)
    lengths = [len(tool.name) for tool in tools]
    joined = sum(is_joined(tool.name) for tool in tools)
    found = {
        "tools": len(tools),
        "places": len({tool.place for tool in tools}),
        "ideas": len(ideas),
        "top_ideas": sum(number for _, number in ideas.most_common(TOP)) / len(tools),
        "repeated_ideas": repeated / len(tools),
        "name_chars": sum(lengths) / len(lengths),
        "names_over_40": sum(length > LONG_NAME for length in lengths) / len(lengths),
        "joined_names": joined / len(tools),
    }
    found |= _shapes(tools)
    return {name: round(value, 4) for name, value in (found | _distances(tools)).items()}


def _shapes(tools: Sequence[CountedTool]) -> dict[str, float]:
    params = [(spec, needed) for tool in tools for spec, needed in _params(tool.input_schema)]
    bare = sum(not any(True for _ in _params(tool.input_schema)) for tool in tools)
    total = max(len(params), 1)
    lists = [
        spec for spec, _ in params if spec.get("type") == "array" and isinstance(_items(spec), dict)
    ]
    return {
        "params": len(params) / len(tools),
        "without_params": bare / len(tools),
        "optional_params": sum(not needed for _, needed in params) / total,
        "default_params": sum("default" in spec for spec, _ in params) / total,
        "enum_params": sum("enum" in spec for spec, _ in params) / total,
        "object_params": sum(_is(spec, "object") for spec, _ in params) / total,
        "object_list_params": sum(_is(_items(spec), "object") for spec in lists) / total,
    }


def _params(schema: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], bool]]:
    """Each with whether it is required."""
    required = schema.get("required")
    needed = required if isinstance(required, list) else []
    properties = schema.get("properties")
    for name, spec in (properties if isinstance(properties, dict) else {}).items():
        if isinstance(spec, dict):
            yield spec, name in needed


def _items(spec: Mapping[str, Any]) -> Any:
    return spec.get("items")


def _is(spec: Mapping[str, Any], kind: str) -> bool:
    """Whether values may be of the type; one that may be null besides is."""
    own = spec.get("type")
    return kind == own or (isinstance(own, list) and kind in own)


def _distances(tools: Sequence[CountedTool]) -> dict[str, float]:
    """To the nearest other tool of the same place, and of any other place."""
    places = np.array([tool.place for tool in tools])
    if len(tools) < ENOUGH:
        return {}
    vectors = vectors_of([tool.row for tool in tools])
    found: dict[str, float] = {}
    within: list[float] = []
    for place in np.unique(places):
        own = vectors[places == place]
        if own.shape[0] > 1:
            numbers = np.arange(own.shape[0])
            within += list(1.0 - nearest(own, own, numbers, numbers))
    across = list(1.0 - nearest(vectors, vectors, places, places))
    for name, distances in (("within", within), ("across", across)):
        if distances:
            found[f"{name}_median"] = float(np.median(distances))
            found[f"{name}_near"] = float((np.array(distances) <= NEAR).mean())
    return found
