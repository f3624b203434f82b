"""The list of exact checks, and what they find in a rewritten part.

    exact_faults(source, rewrite)   # [ExactFault("number", "the part has 3; the rewrite ...")]

A fault is a substitution: something exact of the source is missing, and something of its kind
stands in its place that the source does not hold. What is missing alone or new alone may come with
the form (a sum worked out, a label, speech in a dialogue), so it is a hint for a judge and no
fault.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Literal, NamedTuple

from synth.rephrasing.exact.counted import changed_counts
from synth.rephrasing.exact.formulas import changed_formulas
from synth.rephrasing.exact.names import changed_names
from synth.rephrasing.exact.numbers import (
    changed_dates,
    changed_numbers,
    changed_periods,
    changed_rates,
    changed_units,
)
from synth.rephrasing.exact.readings import PartPair, PartReading
from synth.rephrasing.exact.ties import Ties
from synth.rephrasing.exact.words import (
    changed_cells,
    changed_code,
    changed_quotations,
)

EXACT_VERSION = 3
"""Raised when other rewrites would have faults: what is written hangs on them, so it is part of an
item's id."""

ExactKind = Literal["number", "unit", "date", "name", "quotation", "formula", "code", "table"]

MOST_EVIDENCE = 300
"""Characters of one fault's evidence."""


MOST_FAULTS = 12
"""Of a part that are told; of what is more only the number is."""


class ExactFault(NamedTuple):
    kind: ExactKind
    evidence: str
    """What is wrong, in words by which a rewriter can mend it."""


def exact_faults(source: str, rewrite: str, *, document: str = "") -> list[ExactFault]:
    """Every fault of a rewritten part. `document`: the whole source, whose names may be used. Of a
    translation only numbers, formulas and code are compared. At most `MOST_FAULTS` are told."""
    ours = _source_reading(source)
    pair = PartPair(ours, PartReading(rewrite, untold=ours.language))
    found = list(_found(pair, document))
    faults = [ExactFault(kind, words[:MOST_EVIDENCE]) for kind, words in found[:MOST_FAULTS]]
    if more := len(found) - len(faults):
        last = faults[-1]
        faults[-1] = ExactFault(last.kind, f"{last.evidence} (and {more} more of the like)")
    return faults


@lru_cache(maxsize=128)
def _source_reading(source: str) -> PartReading:
    """Kept, since a part is written several times: in other styles, and again after a fault."""
    return PartReading(source)


def _found(pair: PartPair, document: str) -> Iterator[tuple[ExactKind, str]]:
    ties = Ties(pair)
    for words in changed_numbers(pair, ties):
        yield "number", words
    for words in changed_counts(pair, ties):
        yield "number", words
    for words in changed_formulas(pair):
        yield "formula", words
    for words in changed_code(pair):
        yield "code", words
    if pair.is_translation:
        return
    for words in changed_units(pair):
        yield "unit", words
    for words in changed_rates(pair):
        yield "unit", words
    for words in changed_periods(pair):
        yield "unit", words
    for words in changed_dates(pair):
        yield "date", words
    for words in changed_names(pair, document):
        yield "name", words
    for words in changed_quotations(pair):
        yield "quotation", words
    for words in changed_cells(pair):
        yield "table", words
