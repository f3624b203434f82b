"""Words of English text and of identifiers, reduced to stems that can be compared."""

import re
from functools import lru_cache

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_WORD = re.compile(r"[^\W_]+(?:'[a-z]+)?")
_NEGATED = re.compile(r"\bnot (?:yet )?(\w{4,}ed)\b")
_VOWEL = re.compile(r"[aeiouy]")


def table(text: str) -> tuple[str, ...]:
    """The words of a text, for phrase tables."""
    return tuple(text.split())


STOP = frozenset(
    table(
        "a an the this that these those it its his her their my your our me you we us i he she they"
        " them and or but if then so as of to in on at by for from with into onto about over under"
        " per is are was were be been being am do does did done have has had having will would can"
        " could shall should may might must not no yes please thanks thank hello hi hey dear there"
        " here what which who whom whose when where why how all any each every some such same other"
        " another only also just more most much many very too than up out off down need want like"
        " help let let's i'd i'm i've i'll it's that's what's don't one ones now"
    )
)
"""Words that say nothing about which tool or value is meant."""

SYNONYMS = re.split(
    r"\|",
    "book reserve arrange|cancel revoke abort|delete remove erase drop|send mail forward deliver"
    "|create add open make register new set-up|change update modify edit adjust set|pay settle"
    "|move reschedule shift postpone|find search look locate lookup query track|raise increase"
    "|list show display view see get read fetch give tell check retrieve|buy purchase acquire"
    "|start begin launch run turn activate enable switch|stop end halt finish disable deactivate"
    "|assign allocate give|lower decrease reduce|return refund|record log note|convert translate"
    "|cost price fee charge|client customer member|quantity number amount count"
    "|source from origin|target to destination|compute calculate work total|copy duplicate clone"
    "|close resolve complete",
)
"""Words of one group may stand for each other."""


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """A short form that the inflections of a word share, such as cancel for cancellation."""
    word = word.lower().removesuffix("'s")
    if len(word) <= 3 or not word.isalpha():
        return word
    for suffix, put in (("ies", "y"), ("sses", "ss"), ("xes", "x"), ("ches", "ch"), ("shes", "sh")):
        if word.endswith(suffix):
            word = word[: -len(suffix)] + put
            break
    else:
        if word.endswith("s") and not word.endswith(("ss", "us", "is")):
            word = word[:-1]
    for suffix, least in (("ment", 3), ("ing", 3), ("ed", 3), ("ion", 4), ("al", 4), ("ence", 4)):
        root = word[: -len(suffix)]
        if word.endswith(suffix) and len(root) >= least and _VOWEL.search(root):
            word = root
            break
    word = word.removesuffix("e") if len(word) > 3 else word
    if word.endswith("at") and len(word) >= 6:
        word = word[:-2]
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiou":
        word = word[:-1]
    return word[:-1] + "i" if word.endswith("y") and len(word) > 3 else word


def split(text: str) -> list[str]:
    """Lower-case words; identifiers fall apart at underscores, hyphens and capitals."""
    text = _CAMEL.sub(" ", text).lower().replace("time zone", "timezone")
    return _WORD.findall(_NEGATED.sub(r"un\1", text))


@lru_cache(maxsize=20_000)
def stems(text: str) -> tuple[str, ...]:
    """Stems of the words that carry meaning, in order."""
    return tuple(stem(word) for word in split(text) if word not in STOP)


def stem_set(*texts: str) -> frozenset[str]:
    return frozenset(s for text in texts for s in stems(text))


_GROUP = {stem(word): number for number, group in enumerate(SYNONYMS) for word in group.split()}


def alike(a: str, b: str) -> bool:
    """Whether two stems are the same or stand in one group of synonyms."""
    return a == b or _GROUP.get(a, -1) == _GROUP.get(b, -2)


@lru_cache(maxsize=10_000)
def _synonyms(word: str) -> frozenset[str]:
    """The stems of the group of synonyms in which a stem stands."""
    return frozenset(other for other in _GROUP if alike(word, other))


@lru_cache(maxsize=100_000)
def found(word: str, among: tuple[str, ...] | frozenset[str]) -> float:
    """1 for the stem itself among the stems, 0.5 for a synonym, else 0."""
    if word in among:
        return 1.0
    return 0.0 if _synonyms(word).isdisjoint(among) else 0.5


@lru_cache(maxsize=4096)
def plain(value: str) -> str:
    """An identifier as words: `in_progress` and `inProgress` become `in progress`."""
    return _CAMEL.sub(" ", value).replace("_", " ").strip()


def joined(parts: list[str], last: str = "and") -> str:
    """`a, b and c`."""
    if len(parts) < 2:
        return "".join(parts)
    return ", ".join(parts[:-1]) + f" {last} {parts[-1]}"


ORDINALS = table("first second third fourth fifth sixth")


def sentences(text: str) -> list[str]:
    """Cut after a full stop, question mark or exclamation mark before a capital, and at lines."""
    parts = re.split(r"(?<=[.!?])\s+(?=[A-Z\"'(])|\n+", text)
    return [part.strip() for part in parts if part and part.strip()]
