"""Faithful rewrites made wrong in one place, seeded: what the layers are measured with.

Each function makes one change that alters what the text says, or gives None where the text has
nothing to change. They know nothing of how the layers look for it: patterns here are plainer, and
what they take for a name or a number is their own.
"""

import random
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

_MONTHS = "January February March April May June July August September October November December"
MONTHS = _MONTHS.split()
_COUNTS = "two three four five six seven eight nine ten eleven twelve fifteen twenty"
_STRANGE = "Bremen Kowalski Ottawa Fernandez Yamada Perth Lindgren Tunis Okafor Salzburg"

_FIGURES = re.compile(r"(?<![\w.,$\\{^_-])\d+(?:,\d{3})*(?:\.\d+)?(?![\w}])")
_NUMBER_WORD = re.compile(
    r"\b(two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|fifteen|forty)\b"
)
_NUMBER_WORDS = _COUNTS.split()
_LISTED = re.compile(r"^[ \t]*(?:Question |Step )?(\d+)[.):]", re.MULTILINE)
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,}\b")
_IDENTIFIER = re.compile(r"(?<![\w.])[A-Za-z]+(?:_[a-z]+|[A-Z][a-z]+|(?=\(\)))\w*")
_STRANGERS = _STRANGE.split()
_NOT = re.compile(
    r"\b(is|are|was|were|can|could|must|may|will|would|should|has|have|had|do|does|did) not (?=\w)"
)
_AUXILIARY = re.compile(r"\b(is|are|was|were|can|must|may|will|would|should|has|have|had) (?=\w)")
_SENTENCE_END = re.compile(r"(?<=[a-z0-9)\"]\.)\s+(?=[A-Z\"])")
_FORMULA = re.compile(r"\$([^$\n]{3,200})\$")
_WORD = re.compile(r"\b[a-z]{5,}\b")
_UNITS = (
    (r"(?<=\d )(?:km|kilomet(?:re|er)s?)\b", "miles"),
    (r"(?<=\d )(?:m|met(?:re|er)s?)\b(?![/\u00b2\u00b3])", "feet"),
    (r"(?<=\d )(?:cm|centimet(?:re|er)s?)\b", "mm"),
    (r"(?<=\d )(?:mm|millimet(?:re|er)s?)\b", "cm"),
    (r"(?<=\d )(?:kg|kilograms?)\b", "pounds"),
    (r"(?<=\d )(?:g|grams?)\b", "kg"),
    (r"(?<=\d )(?:mg|milligrams?)\b", "g"),
    (r"(?<=\d )(?:\u00b0C|degrees Celsius)", "\u00b0F"),
    (r"(?<=\d)(?:%| percent)", " kg"),
    (r"(?<=\d )hours\b", "days"),
    (r"(?<=\d )minutes\b", "hours"),
    (r"(?<=\d )seconds\b", "minutes"),
    (r"(?<=\d )days\b", "weeks"),
    (r"(?<=\d )years\b", "months"),
    (r"(?<=\d )(?:ms|milliseconds)\b", "seconds"),
    (r"(?<=\d )(?:million )?(?:euros|dollars|pounds|kronor)\b", "yen"),
)
_INVENTED = (
    "Experts regard the {0} as the main reason for the {1}.",
    "A later survey of the {0} found that the {1} had been overestimated.",
    "Today the {0} is protected by law, and the {1} may be visited.",
    "According to a recent study, the {0} will have replaced the {1} by the end of the decade.",
    "Some people claim that the {0} was copied from a foreign {1}.",
)


class Corruption(NamedTuple):
    text: str
    what: str
    """What was changed, for the reader."""


def changed_number(text: str, rng: random.Random) -> Corruption | None:
    """In figures or in words; not one that only counts the lines of a list."""
    found = [*_FIGURES.finditer(text), *_NUMBER_WORD.finditer(text)]
    listed = {match.start(1) for match in _LISTED.finditer(text)}
    found = [match for match in found if match.start() not in listed]
    if not found:
        return None
    match = rng.choice(found)
    if match[0][0].isdigit():
        digits = [i for i, sign in enumerate(match[0]) if sign.isdigit()]
        at = rng.choice(digits)
        least = "1" if at == 0 else "0"
        other = rng.choice([d for d in "0123456789" if d >= least and d != match[0][at]])
        put = match[0][:at] + other + match[0][at + 1 :]
    else:
        put = rng.choice([word for word in _NUMBER_WORDS if word != match[0]])
    return _replaced(text, match, put)


def changed_unit(text: str, rng: random.Random) -> Corruption | None:
    found = [(match, put) for unit, put in _UNITS for match in re.finditer(unit, text)]
    if not found:
        return None
    return _replaced(text, *rng.choice(found))


def changed_date(text: str, rng: random.Random) -> Corruption | None:
    """Another month, another day beside a month, or another year."""
    months = "|".join(MONTHS)
    found = [
        *re.finditer(rf"\b(?:{months})\b(?= \d| of \d)|(?<=\d )\b(?:{months})\b", text),
        *re.finditer(
            rf"(?<= )\d{{1,2}}(?= (?:{months}))|(?<=(?:{'|'.join(_ENDS)}) )\d{{1,2}}\b", text
        ),
        *re.finditer(r"\b1[0-9]\d\d\b|\b20[0-3]\d\b", text),
    ]
    if not found:
        return None
    match = rng.choice(found)
    if match[0] in MONTHS:
        return _replaced(text, match, rng.choice([m for m in MONTHS if m != match[0]]))
    if len(match[0]) == 4:
        return _replaced(text, match, str(int(match[0]) + rng.choice([-10, -3, -1, 1, 2, 20])))
    days = [day for day in range(1, 29) if day != int(match[0])]
    return _replaced(text, match, str(rng.choice(days)))


_ENDS = tuple(sorted({month[-3:] for month in MONTHS}))
"""Patterns look behind at a fixed length only."""


def swapped_entity(text: str, rng: random.Random) -> Corruption | None:
    """A name that the text does not hold in the place of one that it does."""
    found = _names(text)
    if not found:
        return None
    match = rng.choice(found)
    return _replaced(text, match, rng.choice([s for s in _STRANGERS if s not in text]))


def exchanged_entities(text: str, rng: random.Random) -> Corruption | None:
    """Two names of the text, or two identifiers, change places, each once."""
    for found in (_names(text), list(_IDENTIFIER.finditer(text))):
        pairs = [(a, b) for a in found for b in found if a.end() < b.start() and a[0] != b[0]]
        if pairs:
            a, b = rng.choice(pairs[:200])
            between = text[a.end() : b.start()]
            whole = text[: a.start()] + b[0] + between + a[0] + text[b.end() :]
            return Corruption(whole, f"{a[0]} <-> {b[0]}")
    return None


def negation(text: str, rng: random.Random) -> Corruption | None:
    """A "not" taken away, or put in where there is none."""
    if (found := list(_NOT.finditer(text))) and rng.random() < 0.5:
        match = rng.choice(found)
        return _replaced(text, match, match[1] + " ")
    found = [m for m in _AUXILIARY.finditer(text) if not _NOT.match(text, m.start())]
    if not found:
        return None
    match = rng.choice(found)
    return _replaced(text, match, f"{match[1]} not ")


def invented_sentence(text: str, rng: random.Random) -> Corruption | None:
    """A claim that the text does not make, put together from its own words."""
    words = sorted(set(_WORD.findall(text)))
    if len(words) < 2:
        return None
    sentence = rng.choice(_INVENTED).format(*rng.sample(words, 2))
    return _with_sentence(text, sentence, rng)


def foreign_sentence(text: str, rng: random.Random, *, others: Sequence[str]) -> Corruption | None:
    """A sentence of another text."""
    sentences = [s for s in sentences_of(rng.choice(others)) if len(s.split()) >= 6]
    return _with_sentence(text, rng.choice(sentences), rng) if sentences else None


def dropped_sentence(text: str, rng: random.Random) -> Corruption | None:
    sentences = [s for s in sentences_of(text) if len(s.split()) >= 5 and "\n" not in s]
    if len(sentences) < 2:
        return None
    sentence = rng.choice(sentences)
    return Corruption(text.replace(sentence, "", 1), sentence)


def dropped_paragraph(text: str, rng: random.Random) -> Corruption | None:
    paragraphs = text.split("\n\n")
    long = [i for i, p in enumerate(paragraphs) if len(p.split()) >= 8 and not p.startswith("#")]
    if len(long) < 2:
        return None
    at = rng.choice(long)
    rest = paragraphs[:at] + paragraphs[at + 1 :]
    return Corruption("\n\n".join(rest), paragraphs[at])


def wrong_formula(text: str, rng: random.Random) -> Corruption | None:
    """A digit, a sign or a letter of a formula between dollars is another."""
    found = []
    for formula in _FORMULA.finditer(text):
        for sign in re.finditer(r"\d|[-+]|(?<![\\A-Za-z])[a-z](?![A-Za-z])", formula[1]):
            found.append((formula.start(1) + sign.start(), sign[0]))
    if not found:
        return None
    at, sign = rng.choice(found)
    if sign in "+-":
        put = {"+": "-", "-": "+"}[sign]
    else:
        pool = "123456789" if sign.isdigit() else "abcknmxyz"
        put = rng.choice([other for other in pool if other != sign])
    return Corruption(text[:at] + put + text[at + 1 :], f"{sign} -> {put} at {at}")


Corruptor = Callable[[str, random.Random], Corruption | None]

CORRUPTORS: dict[str, Corruptor] = {
    "changed_number": changed_number,
    "changed_unit": changed_unit,
    "changed_date": changed_date,
    "swapped_entity": swapped_entity,
    "exchanged_entities": exchanged_entities,
    "negation": negation,
    "invented_sentence": invented_sentence,
    "dropped_sentence": dropped_sentence,
    "dropped_paragraph": dropped_paragraph,
    "wrong_formula": wrong_formula,
}
"""By kind; `foreign_sentence` needs other texts besides."""


def sentences_of(text: str) -> list[str]:
    return [
        s.strip() for part in text.split("\n\n") for s in _SENTENCE_END.split(part) if s.strip()
    ]


def _names(text: str) -> list[re.Match[str]]:
    return [match for match in _NAME.finditer(text) if match[0] not in MONTHS]


def _with_sentence(text: str, sentence: str, rng: random.Random) -> Corruption | None:
    ends = [match.start() for match in _SENTENCE_END.finditer(text)] or [len(text.rstrip())]
    at = rng.choice(ends)
    return Corruption(f"{text[:at]} {sentence}{text[at:]}", sentence)


def _replaced(text: str, match: re.Match[str], put: str) -> Corruption:
    whole = text[: match.start()] + put + text[match.end() :]
    return Corruption(whole, f"{match[0]} -> {put}")
