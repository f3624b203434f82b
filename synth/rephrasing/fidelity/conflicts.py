"""Two sentences that say the same but for one thing: a negation, an opposite, a name or a number.

Looked for only where two sentences are each other's best match and share most of their words, so a
free paraphrase is never blamed, and a free contradiction is not seen: that is the judge's part.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from synth.rephrasing.facts.stems import stem
from synth.rephrasing.facts.stopwords import NEGATIONS, STOPWORDS
from synth.rephrasing.facts.text import ReadText
from synth.rephrasing.fidelity.alignment import Alignment

_OPPOSITES = (
    "before after|increase decrease|increases decreases|increased decreased|rise fall|rises falls"
    "|rose fell|more less|more fewer|most least|always never|greater smaller|greater less"
    "|larger smaller|higher lower|highest lowest|above below|first last|maximum minimum"
    "|longest shortest|true false|positive negative|even odd|open closed|opens closes|left right"
    "|inside outside|earlier later|early late|warm cold|hot cold|north south|east west|all none"
    "|mutable immutable|optional required|allowed forbidden|faster slower|stronger weaker"
    "|can cannot|import export|public private|upper lower|old new|older younger"
)
_OPPOSITE: dict[str, set[str]] = {}
for _pair in _OPPOSITES.split("|"):
    _one, _other = _pair.split()
    _OPPOSITE.setdefault(_one, set()).add(_other)
    _OPPOSITE.setdefault(_other, set()).add(_one)
_PREFIXES = ("un", "in", "im", "non", "dis", "ir")
_DENYING = (
    "refus",
    "forbid",
    "prevent",
    "avoid",
    "lack",
    "miss",
    "except",
    "unless",
    "un",
    "rather",
)
_TOKEN = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*|[.,;:!?]")

_MAY_DENY = re.compile(r"not|n['\u2019]t|never", re.IGNORECASE)

MIN_CLOSENESS = 0.3
"""Sentences less alike are not compared at all."""

REACH = 4
"""Words after a negation among which is what it denies."""

NEAR = 5
"""Words around a word among which is what denies it."""

_FACT = re.compile(
    r"\d{1,2}:\d\d(?::\d\d)?(?: ?[ap]\.?m)?|\d{1,2} ?[ap]\.?m\b|(\d[\d.,]*|[A-Z][^\W\d_]{2,})"
)


class Conflict(NamedTuple):
    kind: str
    """negation, opposite or exchange."""
    what: str
    source: str
    rewrite: str
    closeness: float
    """How well the sentences cover each other, 0 to 1: the worse of both ways."""


def conflicts_of(source: ReadText, rewrite: ReadText, alignment: Alignment) -> tuple[Conflict, ...]:
    """Denials first, which are looked for between a sentence and its best match and what stands
    beside that; then what else differs between two sentences that are each other's best."""
    found: list[Conflict] = []
    for one, other, matches in (
        (rewrite, source, alignment.rewrite),
        (source, rewrite, alignment.source),
    ):
        for match in matches:
            ours = one.sentences[match.sentence].text
            if match.other is None or match.score < MIN_CLOSENESS or not _MAY_DENY.search(ours):
                continue
            theirs = other.sentences[match.other].text
            if denied := _denied(ours, other, match.other):
                pair = (theirs, ours) if one is rewrite else (ours, theirs)
                found.append(Conflict("negation", denied, *pair, match.score))
    return (*found, *_exchanges(source, rewrite, alignment))


def _exchanges(source: ReadText, rewrite: ReadText, alignment: Alignment) -> Iterator[Conflict]:
    best = {match.sentence: match for match in alignment.source}
    for match in alignment.rewrite:
        back = best.get(match.other) if match.other is not None else None
        if back is None or back.other != match.sentence:
            continue
        closeness = min(match.score, back.score)
        if closeness < MIN_CLOSENESS:
            continue
        ours, theirs = source.sentences[back.sentence].text, rewrite.sentences[match.sentence].text
        for kind, what in _differences(source, back.sentence, rewrite, match.sentence):
            yield Conflict(kind, what, ours, theirs, closeness)


def _differences(source: ReadText, i: int, rewrite: ReadText, j: int) -> Iterator[tuple[str, str]]:
    known, known_others = set(source.sentence_words[i]), set(rewrite.sentence_words[j])
    for word in sorted(known - known_others):
        if against := (_OPPOSITE.get(word, set()) & known_others) - known:
            yield "opposite", f"{word} / {min(against)}"
    own, others = _facts(source.sentences[i].text), _facts(rewrite.sentences[j].text)
    if own <= others or others <= own:
        return
    gone, new = own - _facts_around(rewrite, j), others - _facts_around(source, i)
    gone = {fact for fact in gone if fact.casefold() not in known_others}
    new = {fact for fact in new if fact.casefold() not in known}
    if gone and new:
        yield "exchange", f"{min(gone)} / {min(new)}"


@lru_cache(maxsize=512)
def _facts(sentence: str) -> frozenset[str]:
    """Numbers in one spelling, and words with a capital that do not begin the sentence. Times of
    day are left to the dates: they have too many spellings."""
    found = (match for match in _FACT.finditer(sentence) if match[1])
    found = (match for match in found if match.start() or match[0].isdigit())
    return frozenset(match[0].replace(",", "").rstrip(".") for match in found)


def _facts_around(text: ReadText, index: int) -> frozenset[str]:
    beside = text.sentences[max(0, index - 1) : index + 2]
    return frozenset().union(*(_facts(sentence.text) for sentence in beside))


def _denied(sentence: str, other: ReadText, index: int) -> str | None:
    """A word that the sentence denies, and that the other one states and nothing near it denies."""
    own = _TOKEN.findall(sentence.casefold())
    negated = list(_negated(own))
    if not negated:
        return None
    tokens = _TOKEN.findall(_around(other, index).casefold())
    stated = set(map(stem, other.sentence_words[index]))
    for negation, word in negated:
        if own.count(word) > 1:
            continue  # the sentence states it, too: "name special items, but not special"
        if stem(word) in stated and not _is_denied(stem(word), tokens):
            return f"{negation} {word}"
    return None


def _negated(tokens: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(negation, the telling word that it denies), where one follows closely."""
    for index, token in enumerate(tokens):
        if not _denies_what_follows(token):
            continue
        for word in tokens[index + 1 : index + 1 + REACH]:
            if not word[0].isalnum():
                break
            if word not in STOPWORDS:
                yield token, word
                break


def _is_denied(stemmed: str, tokens: Sequence[str]) -> bool:
    """Also by a word such as "refuse" or a prefix, which deny in their own way."""
    for index, token in enumerate(tokens):
        near = tokens[max(0, index - NEAR) : index + NEAR]
        if stem(token) == stemmed and any(map(_is_denying, near)):
            return True
    return any(prefix + stemmed == stem(token) for token in tokens for prefix in _PREFIXES)


def _denies_what_follows(token: str) -> bool:
    """ "No" and "without" deny a thing, which the other text may well name: "needs no ticket"."""
    return token in ("not", "never", "cannot") or token.endswith(("n't", "n\u2019t"))


def _is_negation(token: str) -> bool:
    return token in NEGATIONS or token.endswith(("n't", "n\u2019t"))


def _is_denying(token: str) -> bool:
    return _is_negation(token) or token.startswith(_DENYING)


def _around(text: ReadText, sentence: int) -> str:
    beside = text.sentences[max(0, sentence - 1) : sentence + 2]
    return " ".join(sentence.text for sentence in beside)
