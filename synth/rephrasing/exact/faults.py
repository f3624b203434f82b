"""The list of exact checks, and what they find in a rewritten part.

    exact_faults(source, rewrite)   # [ExactFault("number", "the part has 3; the rewrite ...")]

A fault is a substitution: something exact of the source is missing, and something of its kind
stands in its place that the source does not hold. What is missing alone or new alone may come with
the form (a sum worked out, a label, speech in a dialogue), so it is a hint for a judge and no
fault.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from synth.rephrasing.exact.formulas import changed_formulas
from synth.rephrasing.exact.numbers import changed_dates, changed_numbers, changed_units
from synth.rephrasing.exact.readings import PartPair, PartReading
from synth.rephrasing.exact.words import (
    changed_cells,
    changed_code,
    changed_names,
    changed_quotations,
    words_in,
)

EXACT_VERSION = 1
"""Raised when other rewrites would have faults: what is written hangs on them, so it is part of an
item's id."""

ExactKind = Literal["number", "unit", "date", "name", "quotation", "formula", "code", "table"]

MOST_EVIDENCE = 300
"""Characters of one fault's evidence."""


class ExactFault(NamedTuple):
    kind: ExactKind
    evidence: str
    """What is wrong, in words by which a rewriter can mend it."""


def exact_faults(source: str, rewrite: str, *, document: str = "") -> list[ExactFault]:
    """Every fault of a rewritten part. `document`: the whole source, whose names may be used. Of a
    translation only numbers, formulas and code are compared. The work grows with the texts' lengths
    and, where they differ, with the squares of their numbers of facts of a kind."""
    pair = PartPair(PartReading(source), PartReading(rewrite))
    known = words_in(document)
    return [ExactFault(name, words[:MOST_EVIDENCE]) for name, words in _found(pair, known)]


def _found(pair: PartPair, known: set[str]) -> Iterator[tuple[ExactKind, str]]:
    for words in changed_numbers(pair):
        yield "number", words
    for words in changed_formulas(pair):
        yield "formula", words
    for words in changed_code(pair):
        yield "code", words
    if pair.is_translation:
        return
    for words in changed_units(pair):
        yield "unit", words
    for words in changed_dates(pair):
        yield "date", words
    for words in changed_names(pair, known):
        yield "name", words
    for words in changed_quotations(pair):
        yield "quotation", words
    for words in changed_cells(pair):
        yield "table", words
