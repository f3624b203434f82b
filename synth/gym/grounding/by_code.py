"""What code can tell of one sentence of an answer; everything else stays open.

Supported: a sentence of a document word for word, or one up to an "and"; the values of a record's
fields and nothing else; the answer that the task names, alone. Contradicted: another value of the
field that was asked for; another number or date in a sentence that is otherwise a document's, where
the material has it nowhere. Unsupported: a number, date, time or id that the material has
nowhere, and from which it does not follow; a field of which it is known that no result has it.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from synth.gym.grounding.material import Material, MaterialSentence, telling_words
from synth.gym.grounding.silence import is_silence, states_nothing
from synth.rephrasing.exact.derived import (
    GivenNumber,
    follows_from,
    follows_from_two,
    forms_of,
    operands_of,
)
from synth.rephrasing.exact.faults import exact_faults
from synth.rephrasing.exact.readings import PartReading
from synth.rephrasing.facts.quantities import Quantity
from synth.rephrasing.facts.text import squeeze
from synth.rubrics.reading.readings import TextReadings, ValueReading, read
from synth.rubrics.statements.binding import bind, unknown_ids
from synth.rubrics.statements.comparing import could_be
from synth.rubrics.statements.known import label_of
from synth.rubrics.values import same_value

SentenceFinding = Literal[
    "supported", "contradicted", "unsupported", "no_claim", "abstains", "open"
]
"""`abstains`: it says that the material does not tell what was asked; `open`: for the judge."""

FEWEST_WORDS = 4
"""Of a document's sentence that is told up to an "and"."""

ALIKE = 0.5
"""Share of a sentence's telling words that a document's sentence has as well, from which on another
value in it stands in the place of that one's."""

MOST_PARTS = 6
"""Of one sentence that are looked at one by one."""

LONGEST = 800
"""Characters of a sentence that code looks at."""

SMALL = 12
"""Up to here a whole number without a unit may count anything, and is not asked for."""

_DOUBTS = (
    "negations",
    "conditions",
    "alternatives",
    "openers",
    "history",
    "estimates",
    "reckoning",
)
_LEAD = re.compile(
    r"(?:according to|based on|as stated in|in|from|per) (?:the|this|your|these) "
    r"(?:provided |given |attached )?(?:documents?|notice|text|context|material|record|results?)"
    r"(?: provided| given)?, ?|the (?:documents?|notice|text|context|material) (?:says?|states?) "
    r"that ",
    re.IGNORECASE,
)
_AND = re.compile(r"(?:,? and |; |, )(?=\S)")
_QUALIFIED = re.compile(
    r"\b(?:no|not|never|unless|if|except|only|until|when|where|while|before|after|than|other"
    r"|without|or|may|might|could|would|should|can|must|but|however|apart|up to|at most|at least"
    r"|usually|about|each|per|every|both|together)\b|n['\u2019]t\b",
    re.IGNORECASE,
)
_BARE = re.compile(r"[\W_]+")


class CodeFinding(NamedTuple):
    finding: SentenceFinding
    why: str = ""
    """What decides it, in words; empty where it is open."""


OPEN = CodeFinding("open")


def decided(sentence: str, material: Material, answers: Sequence[str] = ()) -> CodeFinding:
    """What code tells of a sentence. `answers`: what a right answer tells, as the task has it."""
    if len(sentence) > LONGEST:
        return OPEN
    if states_nothing(sentence):
        return CodeFinding("no_claim", "it states nothing")
    if is_silence(sentence, material.question_words, material.question):
        return CodeFinding("abstains", "it says that the material does not tell it")
    said = _LEAD.sub("", sentence, count=1) if _LEAD.match(sentence) else sentence
    if _is_copied(said, material):
        return CodeFinding("supported", "a document says so word for word")
    if any(_bare(said) == _bare(one) and _stands(one, material) for one in answers):
        return CodeFinding("supported", "it is the answer, which the material holds")
    if material.missing is not None and _tells(material.missing, said, material):
        return CodeFinding("unsupported", f"no result tells the {material.missing}")
    if material.results and (of_record := _of_records(said, material)) is not OPEN:
        return of_record
    return _by_values(said, material)


def _is_copied(said: str, material: Material) -> bool:
    own = squeeze(said).strip(".,;:!")
    if own in material.squeezed_sentences:
        return True
    if len(said.split()) < FEWEST_WORDS:
        return False
    return any(own == head for one in material.sentences for head in _heads(one))


def _heads(sentence: MaterialSentence) -> Iterator[str]:
    """The sentence up to an "and", a comma or a semicolon, where nothing that is left out limits
    what is said before."""
    for cut in _AND.finditer(sentence.text):
        head, rest = sentence.text[: cut.start()], sentence.text[cut.end() :]
        if len(head.split()) >= FEWEST_WORDS and not _QUALIFIED.search(rest):
            yield squeeze(head).strip(".,;:!")


def _bare(text: str) -> str:
    return _BARE.sub("", text.casefold())


def _stands(value: str, material: Material) -> bool:
    own = squeeze(value)
    return bool(own) and own in material.squeezed


def _tells(missing: str, said: str, material: Material) -> bool:
    """Whether it tells the field that no result has: by its name, or a value and nothing else."""
    readings = _read(said)
    if any(readings.table.find(kind, readings.lower) for kind in ("negations", "conditions")):
        return False
    if missing not in readings.lower.replace("_", " "):
        return len(said.split()) <= FEWEST_WORDS and any(r.kind != "id" for r in readings.readings)
    return bool(telling_words(said) - material.question_words)


def _of_records(said: str, material: Material) -> CodeFinding:
    """By the records of the results: as a whole, else part by part."""
    whole = _of_record(said, material)
    if whole is not OPEN:
        return whole
    parts = _AND.split(said)
    if not 1 < len(parts) <= MOST_PARTS:
        return OPEN
    found = [_of_record(part, material) for part in parts]
    if wrong := next((one for one in found if one.finding == "contradicted"), None):
        return wrong
    if all(one.finding == "supported" for one in found):
        return CodeFinding("supported", " ".join(one.why for one in found))
    return OPEN


def _of_record(said: str, material: Material) -> CodeFinding:
    """A part that names no record is of the one that was asked about, and one that names no field
    is of the field, where one was asked for."""
    record, known = material.record, material.records
    readings = _read(said)
    if record is None or any(True for _ in readings.of("id")):
        forms = [said]
    else:
        forms = [f"{record}: {said}", _its(said, record)]
        if len(material.fields) == 1:
            forms.append(f"The {label_of(material.fields[0])} of {record} is {said}")
    for form in forms:
        read_form = _read(form)
        finding = bind(read_form, known, is_last=True)
        if finding.outcome == "matched" and any(True for _ in read_form.of("id")):
            return CodeFinding("supported", finding.evidence)
        if finding.outcome == "contradicted":
            return CodeFinding("contradicted", finding.evidence)
    for form in forms:
        if (other := _another_value(_read(form), material)) is not None:
            return CodeFinding("contradicted", other)
    return OPEN


def _its(said: str, record: str) -> str:
    """ "Its fee is 5" of a record is "the fee of it is 5"."""
    return re.sub(r"^(?:it is|it's|its|it) ", f"{record} ", said.strip(), flags=re.IGNORECASE)


def _another_value(said: TextReadings, material: Material) -> str | None:
    """Why it tells a value of a field that was asked for which is not the record's, in words that
    say nothing else of note."""
    record = material.record
    ids = [reading.words.lower() for reading in said.of("id")]
    if record is None or ids != [record.lower()]:
        return None
    for field in material.fields:
        label = label_of(field)
        at = said.lower.replace("_", " ").find(label)
        values = [r for r in said.readings if r.kind != "id"]
        if at < 0 or len(values) != 1 or values[0].start < at or not values[0].is_sure:
            continue
        rest = said.lower[:at] + said.lower[at + len(label) :]
        rest = rest.replace(record.lower(), " ")
        if any(said.table.find(kind, rest) for kind in _DOUBTS) or "?" in rest or '"' in rest:
            continue
        held = material.records.values_of(record.lower(), field)
        if held and all(_is_another(values[0], value) for value in held):
            return f"{field} of {record} is {held[-1]!r}, not {values[0].words!r}"
    return None


def _is_another(reading: ValueReading, value: object) -> bool:
    """Whether both are numbers, or both are dates or times, and not the same."""
    if isinstance(value, bool) or value is None:
        return False
    if isinstance(value, int | float):
        return reading.kind == "number" and not could_be(reading, value)
    of_value = [r for r in _read(str(value)).readings if r.kind == reading.kind]
    whole = len(of_value) == 1 and _bare(of_value[0].words) == _bare(str(value))
    return whole and not could_be(reading, value) and not same_value(reading.words, value)


def _by_values(said: str, material: Material) -> CodeFinding:
    """By the values of the sentence that the material has nowhere."""
    reading = PartReading(said, untold="en")
    unheld = _unheld(reading, material)
    if not unheld:
        return OPEN
    own, denies = telling_words(said), _denies(said)
    best = max(material.sentences, key=lambda one: len(own & one.telling), default=None)
    is_like = best is not None and own and len(own & best.telling) >= ALIKE * len(own)
    if best is not None and is_like and denies is _denies(best.text):
        for fault in exact_faults(best.text, said, document=material.shown):
            if any(words in fault.evidence for words in unheld):
                return CodeFinding("contradicted", fault.evidence)
    operands = operands_of([*material.reading.quantities, *reading.quantities])
    invented = [
        words
        for words, quantity in unheld.items()
        if not (quantity and _follows(quantity, operands))
    ]
    if not invented or denies:  # "not 43" is true of what costs 34
        return OPEN
    return CodeFinding("unsupported", f"the material has nowhere {', '.join(invented)}")


def _unheld(reading: PartReading, material: Material) -> dict[str, Quantity | None]:
    """Numbers, dates, times and ids that the material holds in no way."""
    known = material.reading
    if reading.language != known.language:
        return {}
    found: dict[str, Quantity | None] = {
        quantity.text: quantity
        for quantity in reading.firm
        if not known.holds(quantity, implied=True) and not _is_small(quantity)
    }
    for date in reading.dates:
        if not any(map(date.agrees, known.dates)) and not _is_in_records(date.text, material):
            found[date.text] = None
    ids = unknown_ids(_read(reading.text.text), material.records)
    return found | dict.fromkeys(ids)


def _denies(said: str) -> bool:
    readings = _read(said)
    return readings.table.find("negations", readings.lower)


def _is_small(quantity: Quantity) -> bool:
    value = quantity.value
    return quantity.unit is None and isinstance(value, int) and 0 <= value <= SMALL


def _follows(quantity: Quantity, operands: Sequence[GivenNumber]) -> bool:
    """Whether it is reckoned from the material's numbers."""
    return any(
        follows_from_two(form, operands)
        or any(follows_from(form, one, operands) for one in operands)
        for form in forms_of(quantity)
    )


def _is_in_records(words: str, material: Material) -> bool:
    return any(material.records.values.may_hold(reading) for reading in _read(words).readings)


def _read(text: str) -> TextReadings:
    return read(text, "en")
