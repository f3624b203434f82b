"""All tools that the patterns give for a domain, and which of them a request is answered with."""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from random import Random
from zlib import crc32

from offline_llm.tools.draft import Impossible, ToolDraft
from offline_llm.tools.english import shortened
from offline_llm.tools.idea import Idea
from offline_llm.tools.outline import Outline
from offline_llm.tools.parents import WRITES
from offline_llm.tools.patterns import (
    changing,
    checking,
    dating,
    finding,
    listing,
    lists,
    making,
    measuring,
    moving,
    relating,
    removing,
    reporting,
    shifting,
)

MODULES = (
    finding,
    listing,
    dating,
    reporting,
    measuring,
    checking,
    making,
    changing,
    shifting,
    moving,
    relating,
    removing,
    lists,
)
LONGEST_NAME = 64


_SPREAD = 30
"""How far a draw moves a candidate in the order in which patterns take turns."""
_SURE = 5
"""Tools that exist beyond a candidate, before it counts as one that was tried and refused."""
_FIGURES = re.compile(r"\b(?:count|sum|min|max|average|tally)\(")
_AIMS = {
    "look one up": "get",
    "search or list": "search",
    "figures over many": "report",
    "make one": "create",
    "change one": "update",
    "move one on": "move",
    "change many": "bulk",
    "add to or take out": "link",
    "remove one": "delete",
}
"""Words of an aim -> the kind of tool."""


class Candidate:
    """A tool that could be given, with what it was made from."""

    __slots__ = ("draft", "entity", "kind", "pattern")

    def __init__(self, idea: Idea, draft: ToolDraft) -> None:
        self.pattern, self.entity, self.draft = idea.pattern, idea.entity, draft
        self.kind = _kind_of(draft)

    def meets(self, aim: str) -> bool:
        """An aim names an entity, then the kind, then perhaps a move in parentheses."""
        entity, _, words = aim.partition(":")
        kind = next((kind for text, kind in _AIMS.items() if text in words), "")
        move = words.partition("(")[2].rstrip(")")
        return self.entity == entity.strip() and self.kind == kind and move in self.draft.name


def _kind_of(draft: ToolDraft) -> str:
    writes = [s for s in draft.steps if s["op"] in WRITES]
    if not writes:
        if _FIGURES.search(str(draft.value)):
            return "report"
        return "search" if any("key" not in s for s in draft.steps if s["op"] == "read") else "get"
    if any("in" in s for s in writes):
        return "bulk"
    ops = [s["op"] for s in writes]
    if "create" in ops:
        return "create"
    if ops[0] == "update":
        return "move" if draft.was else "update"
    return "link" if ops[0] == "unlink" else str(ops[0])


def in_turn(known: Sequence[Candidate], taken: Collection[str], rng: Random) -> list[Candidate]:
    """Those whose names are free, in their order but for the draw. One that was passed and does
    not exist was refused before: it comes last."""
    reached = [place for place, c in enumerate(known) if c.draft.name in taken][-_SURE:]
    passed = reached[0] - _SPREAD if len(reached) == _SURE else 0
    ranked = []
    for place, candidate in enumerate(known):
        if candidate.draft.name not in taken:
            late = len(known) if place < passed else 0
            ranked.append((place + late + rng.random() * _SPREAD, candidate))
    return [candidate for _, candidate in sorted(ranked, key=lambda pair: pair[0])]


@lru_cache(maxsize=4)
def candidates(domain: str) -> tuple[Candidate, ...]:
    """Of a domain, as json text: no two of one name, patterns taking turns."""
    outline = Outline(json.loads(domain))
    groups: dict[str, list[Candidate]] = {}
    taken: set[str] = set()
    for module in MODULES:
        for idea in module.ideas(outline):
            try:
                draft = idea.build()
            except Impossible:
                continue
            draft.name = shortened(draft.name)
            if draft.name not in taken and len(draft.name) <= LONGEST_NAME:
                taken.add(draft.name)
                groups.setdefault(idea.pattern, []).append(Candidate(idea, draft))
    for group in groups.values():
        group.sort(key=lambda c: crc32(f"{outline.name}:{c.draft.name}".encode()))
    order = sorted(groups, key=lambda pattern: crc32(f"{outline.name}:{pattern}".encode()))
    return tuple(_in_turns({pattern: groups[pattern] for pattern in order}))


def _in_turns(groups: dict[str, list[Candidate]]) -> Iterator[Candidate]:
    """One of each pattern, then the second of each, and so on; entities that came less go first."""
    seen: Counter[str] = Counter()
    while groups:
        for pattern in list(groups):
            group = groups[pattern]
            best = min(group, key=lambda c: seen[c.entity])
            group.remove(best)
            seen[best.entity] += 1
            yield best
            if not group:
                del groups[pattern]
