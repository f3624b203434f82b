"""Other words and another order of clauses for one English sentence, its meaning left alone.

A rule is taken only where the sentence's form leaves no doubt; what no rule fits stays as it is.
Formulas, code and quotations are single signs here (`rewriter_reading.Kept`).
"""

import re
from random import Random
from typing import NamedTuple

from offline_llm.reading.words import STOP
from offline_llm.rewriter.phrases import ORDINARY, exchanged, upper_first
from offline_llm.rewriter.reading import SIGNS

_JOINS = "if|when|unless|because|since|although|while|after|before|once|where"
_FIRST = re.compile(
    rf"({_JOINS})\b ([^,;:]{{8,160}}), (?:then )?(?!and |or |but |nor )([^;:]{{8,}}[^.;:])\.", re.I
)
_LAST = re.compile(r"([^,;:]{12,}?),? (if|when|unless|because|although|once) ([^,;:]{8,})\.")
_BOUND = re.compile(
    r"\b(?:only|even|as|just|but|not|and|or|what|that|than|is|are|be|to|see)$", re.I
)
_PLACE = re.compile(
    rf"([^,;:]{{25,}}) ((?:in|during|at|by|from) (?:the|a|an|this|each) [\w{SIGNS}-]+"
    rf"(?: [\w{SIGNS}-]+)?)\."
)
_TIED = re.compile(
    r"(?:it|its|they|their|them|these|those|this|that|such|he|she|his|her|otherwise|also|then"
    r"|thus|hence|therefore|so|however|but|and|or|first|second|third|finally|next|for|in this"
    r"|here|both|another|other|the former|the latter|as a result|likewise|similarly|again|note"
    r"|see|(?:new|changed|added|deprecated|removed) (?:in|since)|called)\b",
    re.I,
)
_NAMED = re.compile(
    rf"((?:(?:the|a|an|this|each|every|all|any) )?(?:[\w{SIGNS}'-]+ ){{0,3}}[\w{SIGNS}'-]+?) "
    r"(is|are|was|were|can|must|may|has|have|will|should|does|do|returns?|contains?|means?|holds?"
    r"|takes?|gives?|makes?|allows?|provides?)\b",
    re.I,
)
_NO_TOPIC = re.compile(
    r"\b(?:it|they|there|this|that|these|those|you|we|he|she|which|who|if)\b", re.I
)
_MODALS = {"must": ("has to", "have to"), "can": ("is able to", "are able to")}
_TWO = re.compile(r"([^;:]{30,}?), (and|but) ([^;:]{20,})")
_BINDING = re.compile(
    r"\b(?:if|when|whenever|unless|because|since|while|after|before|once|until|that|which|who"
    r"|where|either|both|neither|whether|between|in case|provided|although|though|as|not|no"
    r"|none)\b",
    re.I,
)


class Remark(NamedTuple):
    """One sentence and what can be said of it."""

    text: str
    topic: str
    """What it is about, in the words of the source: its subject, or some words of it."""
    verb: str
    """After the subject; empty where the topic is no subject."""
    condition: str
    """Of a sentence of the form "if this, that"; else empty."""
    is_tied: bool
    """Speaks of the sentence before it."""


def point_of(sentence: str, rng: Random) -> Remark:
    """The sentence said anew; what it is about is told in its old words."""
    found = _FIRST.fullmatch(sentence)
    conditional = found is not None and found[1].lower() in ("if", "when", "unless")
    condition = f"{found[1].lower()} {found[2]}" if found and conditional else ""
    named = _NAMED.match(sentence)
    topic, verb = (named[1], named[2]) if named else ("", "")
    if not topic or _NO_TOPIC.search(topic):
        topic, verb = _some_words(sentence), ""
    is_tied = bool(_TIED.match(sentence))
    return Remark(reworded(sentence, rng), lower_first(topic), verb, condition, is_tied)


def _some_words(sentence: str) -> str:
    """The first few words in a row that carry meaning."""
    runs = re.findall(rf"(?:[\w{SIGNS}'-]+ ?)+", sentence)
    kept: list[str] = []
    for word in " ".join(runs).split():
        telling = word.lower() not in STOP and "'" not in word and len(word) > 2
        if telling or word[0] >= "\U000f0000":
            kept.append(word)
        elif kept:
            break
        if len(kept) == 3:
            break
    return " ".join(kept)


def is_whole(*pieces: str) -> bool:
    """Whether each piece closes the brackets that it opens: a sentence is not cut inside one."""
    return all(
        one.count(opened) == one.count(closed) for one in pieces for opened, closed in ("()", "[]")
    )


def reworded(sentence: str, rng: Random) -> str:
    """The sentence with its clauses turned round where that is safe, and some words exchanged."""
    if sentence.endswith(":") or len(sentence.split()) < 4:
        return exchanged(sentence, rng)
    return exchanged(_obliged(_turned(sentence, rng)), rng)


def _turned(sentence: str, rng: Random) -> str:
    if found := _FIRST.fullmatch(sentence):
        join, clause, rest = found[1].lower(), found[2], found[3]
        if is_whole(clause, rest) and not _TIED.match(rest) and " if " not in rest:
            return upper_first(f"{lower_first(rest)} {join} {clause}.")
        return sentence
    if (found := _LAST.fullmatch(sentence)) and not _BOUND.search(found[1]):
        rest, join, clause = found[1], found[2], found[3]
        relative = " that " in rest or " which " in rest
        if is_whole(rest, clause) and not relative and not _TIED.match(rest):
            return f"{upper_first(join)} {clause}, {lower_first(rest)}."
    if (found := _PLACE.fullmatch(sentence)) and rng.random() < 0.7:
        rest, place = found[1], found[2]
        free = is_whole(rest, place) and not _TIED.match(rest)
        if free and not re.search(r"\b(?:of|than|between|defined|as)$", rest):
            return f"{upper_first(place)}, {lower_first(rest)}."
    return sentence


def _obliged(sentence: str) -> str:
    """What must or can be, said in full after a plain subject, whose last word tells its number."""
    named = _NAMED.match(sentence)
    if not named or named[2] not in _MODALS or _NO_TOPIC.search(named[1]):
        return sentence
    words, after = named[1].split(), sentence[named.end() :]
    if after.startswith((" not", ",")) or len(words) > 3 or not words[-1].isalpha():
        return sentence
    many = words[-1].endswith("s") and not words[-1].endswith(("ss", "us", "is"))
    return f"{named[1]} {_MODALS[named[2]][many]}{after}"


def parted(sentence: str) -> list[str]:
    """Two sentences where two plain statements are joined and nothing binds them together."""
    found = _TWO.fullmatch(sentence)
    if not found or _BINDING.search(sentence) or not _NAMED.match(found[3]):
        return [sentence]
    if not is_whole(found[1], found[3]):
        return [sentence]
    join = "However" if found[2] == "but" else "Also"
    return [f"{found[1]}.", f"{join}, {found[3]}"]


def lower_first(text: str) -> str:
    """With a small first letter, unless the first word may be a name."""
    word = re.match(r"[A-Za-z]+", text)
    if word and word[0].lower() in ORDINARY:
        return text[:1].lower() + text[1:]
    return text


def in_safe_order(points: list[Remark], rng: Random) -> list[Remark]:
    """Neighbours exchanged where neither they nor what follows speak of what went before."""
    found = list(points)
    k = 0
    while k + 1 < len(found):
        follows_tied = k + 2 < len(found) and found[k + 2].is_tied
        if not (found[k].is_tied or found[k + 1].is_tied or follows_tied) and rng.random() < 0.5:
            found[k], found[k + 1] = found[k + 1], found[k]
            k += 1
        k += 1
    return found
