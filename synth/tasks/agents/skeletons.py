"""What is left of a system prompt when its names, numbers and words of its tools are taken out.

Two prompts of one skeleton are one text with other things filled in, which word for word they do
not show. A skeleton is compared by its word 4-grams; two are one from a Jaccard similarity of 0.5.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from functools import cache
from typing import NamedTuple

from records.tables.schemas import Row
from tool_specs.coverage.duplicates import Shingles, jaccard
from tool_specs.growth.text_kinds import words

GRAM = 4
THRESHOLD = 0.5
MARK = "_"
RULE_WORDS = 5
"""Shorter sentences are shared by chance."""
SHARED_RULES = 2
"""Sentences that a prompt has in common with another one, from which it counts as told twice."""

_SIGN = r"\u3040-\u30ff\u3400-\u9fff"
"""Characters of languages that put no space between words."""

_TOKEN = re.compile(
    rf"\d[\d.,:]*|[{_SIGN}]|(?:(?![{_SIGN}])[^\W\d_])+(?:['-][^\W\d_]+)*|[.!?:\n\u3002\uff01\uff1f\uff1a]"
)
_SPLIT = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_a-zA-Z]+")
_ENDS = frozenset(".!?:\n\u3002\uff01\uff1f\uff1a")
_GERMAN_TEXT = """aber als am auf aus bei bin bist das dass dem den der des die dir du durch ein
eine einen einem einer er es für gibt hast hat ich ihm ihn ihr im ist kein keine mit nach nicht noch
nur oder sein sich sie sind um und uns vom von vor was wenn wer wie wir wird zu zum zur"""
_GERMAN = frozenset(_GERMAN_TEXT.split())
GERMAN_SHARE = 0.15
"""Of the words that are function words of German, above which a prompt is German. A few of them
are English words, too, and German texts have a third."""
_COMMON_TEXT = """a an and are as at be by can do for from get has have how if in is it its no not
of on one or so that the their them then they this to what when where which who will with you
your"""
_COMMON = frozenset(_COMMON_TEXT.split()) | _GERMAN
"""Words that say nothing of a tool, though descriptions have them."""


class SkeletonCount(NamedTuple):
    """How prompts share skeletons."""

    prompts: int
    skeletons: int
    largest: int
    """Prompts of the skeleton that most have."""
    members: tuple[str, ...]
    """Their agents' ids."""
    sharing: int
    """Prompts that have two sentences, of five words and more, in common with an earlier one, with
    names, numbers and words of tools taken out."""

    @property
    def largest_share(self) -> float:
        return self.largest / self.prompts if self.prompts else 0.0


def skeleton_of(prompt: str, own_words: Set[str]) -> Shingles:
    """4-grams of the prompt with a mark instead of each number, of each name and of each of
    `own_words` (lower case); neighbouring marks are one. A name is a word with a capital inside a
    sentence; in German, where every noun has one, a name that we know and what has a capital behind
    such a name. Chinese and Japanese are read by the character."""
    found: list[str] = []
    for word in (word for sentence in _sentences(prompt, own_words) for word in sentence):
        if word != MARK or found[-1:] != [MARK]:
            found.append(word)
    grams = {tuple(found[i : i + GRAM]) for i in range(len(found) - GRAM + 1)}
    return frozenset(grams or {tuple(found)})


def rules_of(prompt: str, own_words: Set[str]) -> frozenset[tuple[str, ...]]:
    """The sentences of the prompt as a skeleton has them, those of five words and more."""
    return frozenset(
        sentence
        for words in _sentences(prompt, own_words)
        if len(sentence := tuple(words)) >= RULE_WORDS and set(sentence) != {MARK}
    )


def _sentences(prompt: str, own_words: Set[str]) -> list[list[str]]:
    tokens = _TOKEN.findall(prompt)
    names = _known_names() if _is_german(tokens) else None
    sentences: list[list[str]] = [[]]
    is_name = False
    for token in tokens:
        begins = not sentences[-1]
        is_name = is_name and not begins
        if token in _ENDS:
            if not begins:
                sentences.append([])
            continue
        word = token.lower()
        is_name = token[0].isupper() and (is_name or word in names if names else not begins)
        sentences[-1].append(MARK if token[0].isdigit() or is_name or word in own_words else word)
    return sentences


def _is_german(tokens: Sequence[str]) -> bool:
    words = [token for token in tokens if token not in _ENDS]
    return sum(word.lower() in _GERMAN for word in words) > GERMAN_SHARE * len(words)


@cache
def _known_names() -> frozenset[str]:
    return frozenset(n.lower() for kind in ("first_names", "last_names") for n in words()[kind])


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
    told: dict[tuple[str, ...], set[str]] = {}
    sharing = 0
    for agent in agents:
        prompt, own_words = agent["system_prompt"], _own_words(agent, tools, domains)
        skeleton = skeleton_of(prompt, own_words)
        near = (name for name, other in first if jaccard(skeleton, other) >= THRESHOLD)
        name = next(near, agent["agent_id"])
        if name == agent["agent_id"]:
            first.append((name, skeleton))
        sizes[name] += 1
        members.setdefault(name, []).append(agent["agent_id"])
        rules = rules_of(prompt, own_words)
        shared = Counter(other for rule in rules for other in told.get(rule, ()))
        sharing += max(shared.values(), default=0) >= SHARED_RULES
        for rule in rules:
            told.setdefault(rule, set()).add(agent["agent_id"])
    largest, count = max(sizes.items(), key=lambda one: (one[1], one[0]), default=("", 0))
    ids = tuple(members.get(largest, ()))
    return SkeletonCount(sum(sizes.values()), len(sizes), count, ids, sharing)


def _own_words(agent: Row, tools: Mapping[str, Row], domains: Mapping[str, Row]) -> frozenset[str]:
    texts: list[str] = [agent["name"]]
    own: Sequence[str] = agent["tool_ids"]
    for tool in (tools[i] for i in own if i in tools):
        texts += (tool["name"], tool["description"])
    if domain := domains.get(agent["domain_id"] or ""):
        texts += (domain["title"], domain["description"])
    return words_of(texts)
