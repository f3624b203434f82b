"""Which proposed tools repeat what a domain has, each with the reason. Pure: no proof, no order
but that of the proposals."""

import re
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from tool_specs.coverage.duplicates import Shingles

NEAR = 0.8
"""Jaccard similarity from which two descriptions say the same."""

_WORD = re.compile(r"[a-z0-9]+")


class ToolFingerprint(NamedTuple):
    """A tool that the domain has, as far as repeating it goes."""

    name: str
    description: str
    semantics_key: str
    skeleton: str


def shingles(name: str, description: str) -> Shingles:
    """Runs of three words of the name and the description; of shorter texts all their words."""
    words = _WORD.findall(f"{name.replace('_', ' ')} {description}".lower())
    return frozenset(zip(words, words[1:], words[2:], strict=False)) or frozenset([tuple(words)])


def jaccard(one: Shingles, other: Shingles) -> float:
    """|a & b| / |a | b|."""
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared)


class Screen:
    """The tools of a domain so far. What is admitted counts against what comes after it."""

    def __init__(self, known: Iterable[ToolFingerprint], *, per_skeleton: int) -> None:
        """`per_skeleton`: tools of one domain that may share a skeleton."""
        self._per_skeleton = per_skeleton
        self._shingles: dict[str, Shingles] = {}
        self._keys: set[str] = set()
        self._skeletons: Counter[str] = Counter()
        for tool in known:
            self.admit(tool)

    def fault(self, tool: ToolFingerprint) -> str | None:
        """Why the tool is one too many, or None."""
        if tool.name[-1].isdigit():
            return "numbered_name"
        if tool.name in self._shingles:
            return "duplicate_name"
        if tool.semantics_key in self._keys:
            return "same_semantics"
        own = shingles(tool.name, tool.description)
        if any(jaccard(own, other) >= NEAR for other in self._shingles.values()):
            return "near_duplicate"
        if self._skeletons[tool.skeleton] >= self._per_skeleton:
            return "skeleton_quota"
        return None

    def admit(self, tool: ToolFingerprint) -> None:
        self._shingles[tool.name] = shingles(tool.name, tool.description)
        self._keys.add(tool.semantics_key)
        self._skeletons[tool.skeleton] += 1
