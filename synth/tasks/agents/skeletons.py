"""What is left of a system prompt when its names, numbers and words of its tools are taken out.

Two prompts of one skeleton are one text with other things filled in, which word for word they do
not show. A skeleton is compared by its word 4-grams; two are one from a Jaccard similarity of 0.5.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import NamedTuple

from records.tables.schemas import Row
from tool_specs.coverage.duplicates import Shingles, jaccard

GRAM = 4
THRESHOLD = 0.5

_TOKEN = re.compile(r"\d[\d.,:]*|[^\W\d_]+(?:['-][^\W\d_]+)*|[.!?:\n]")
_SPLIT = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_a-zA-Z]+")
_ENDS = frozenset(".!?:\n")
_COMMON_TEXT = """a an and are as at be by can do for from get has have how if in is it its no not
of on one or so that the their them then they this to what when where which who will with you
your"""
_COMMON = frozenset(_COMMON_TEXT.split())
"""Words that say nothing of a tool, though descriptions have them."""


class SkeletonCount(NamedTuple):
    """How prompts share skeletons."""

    prompts: int
    skeletons: int
    largest: int
    """Prompts of the skeleton that most have."""
    members: tuple[str, ...]
    """Their agents' ids."""

    @property
    def largest_share(self) -> float:
        return self.largest / self.prompts if self.prompts else 0.0


def skeleton_of(prompt: str, own_words: Set[str]) -> Shingles:
    """4-grams of the prompt with a mark instead of each number, of each word with a capital inside
    a sentence, and of each of `own_words` (lower case); neighbouring marks are one."""
    found: list[str] = []
    begins = True
    for token in _TOKEN.findall(prompt):
        if token in _ENDS:
            begins = True
            continue
        is_name = token[0].isupper() and not begins
        masked = token[0].isdigit() or is_name or token.lower() in own_words
        word = "_" if masked else token.lower()
        begins = False
        if word != "_" or found[-1:] != ["_"]:
            found.append(word)
    grams = {tuple(found[i : i + GRAM]) for i in range(len(found) - GRAM + 1)}
    return frozenset(grams or {tuple(found)})


def words_of(texts: Iterable[str]) -> frozenset[str]:
    """What a tool's names and descriptions put into a prompt."""
    words = {word.lower() for text in texts for word in _SPLIT.findall(text)}
    return frozenset(words - _COMMON)


def count_skeletons(
    agents: Iterable[Row], tools: Mapping[str, Row], domains: Mapping[str, Row]
) -> SkeletonCount:
    """Skeletons of the agents' prompts in their order. A prompt joins the first that is near the
    prompt it began with. Time grows with prompts times skeletons."""
    first: list[tuple[str, Shingles]] = []
    sizes: Counter[str] = Counter()
    members: dict[str, list[str]] = {}
    for agent in agents:
        skeleton = skeleton_of(agent["system_prompt"], _own_words(agent, tools, domains))
        near = (name for name, other in first if jaccard(skeleton, other) >= THRESHOLD)
        name = next(near, agent["agent_id"])
        if name == agent["agent_id"]:
            first.append((name, skeleton))
        sizes[name] += 1
        members.setdefault(name, []).append(agent["agent_id"])
    largest, count = max(sizes.items(), key=lambda one: (one[1], one[0]), default=("", 0))
    return SkeletonCount(sum(sizes.values()), len(sizes), count, tuple(members.get(largest, ())))


def _own_words(agent: Row, tools: Mapping[str, Row], domains: Mapping[str, Row]) -> frozenset[str]:
    texts: list[str] = [agent["name"]]
    own: Sequence[str] = agent["tool_ids"]
    for tool in (tools[i] for i in own if i in tools):
        texts += (tool["name"], tool["description"])
    if domain := domains.get(agent["domain_id"] or ""):
        texts += (domain["title"], domain["description"])
    return words_of(texts)
