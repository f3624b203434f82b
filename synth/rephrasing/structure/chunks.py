"""A text cut into documents and a document into parts, at its structure and at sentences.

What is not to be changed (code, tables, formulas) is never shown to the rewriter as part of its
work: a line `[[keep 3]]` stands for it, and the text itself is put back in its place afterwards.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from records.sizes import count_tokens
from synth.rephrasing.structure.blocks import (
    VERBATIM,
    BlockKind,
    DocumentBlock,
    blocks_of,
    heading_of,
)
from synth.rephrasing.structure.sentences import pieces

MARKER_TOKENS = 4
"""What a `[[keep N]]` line counts for in a part."""

SMALL = 8
"""A last part under an eighth of the size goes with the one before it."""

HEADING_AT = 0.5
"""A part, or a document, this full is ended before a heading."""

_LABELLED = re.compile(r"\*\*\S|[^\W_a-z][\w ]{0,30}[:\uff1a]")
"""A paragraph of a form: a question or a term in bold, who speaks."""

_CJK = re.compile(r"[\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]")


class Span(NamedTuple):
    start: int
    end: int


class Unit(NamedTuple):
    """What is never cut: a heading, a sentence, an item, a block of code."""

    kind: BlockKind
    start: int
    end: int
    tokens: int


class TextPart(NamedTuple):
    """A run of units that is rewritten in one go."""

    units: tuple[Unit, ...]

    @property
    def span(self) -> Span:
        return Span(self.units[0].start, self.units[-1].end)

    @property
    def tokens(self) -> int:
        """Of what is to be rewritten."""
        return sum(unit.tokens for unit in self.units if unit.kind not in VERBATIM)

    @property
    def is_verbatim(self) -> bool:
        return all(unit.kind in VERBATIM for unit in self.units)


class Document:
    """A text of bounded size with its parts, and how each reads for the rewriter."""

    def __init__(self, text: str, *, chunk_tokens: int) -> None:
        self.text = text
        blocks = blocks_of(text)
        self.parts = parts_of(text, blocks, chunk_tokens)
        kept = (unit for part in self.parts for unit in part.units if unit.kind in VERBATIM)
        self._numbers = {unit.start: number for number, unit in enumerate(kept, start=1)}
        self._word = "keep"
        while f"[[{self._word} " in text:
            self._word += "_"
        self.mark = re.compile(rf"\[\[{self._word} \d+\]\]")
        """A marker, as `markers` gives them."""
        self._place = re.compile(rf"\s*({self.mark.pattern})\s*")

    def headings(self, part: TextPart) -> list[str]:
        return [heading_of(self._of(unit)) for unit in part.units if unit.kind == "heading"]

    def markers(self, part: TextPart) -> list[str]:
        return [self._marker(unit) for unit in part.units if unit.kind in VERBATIM]

    def kept(self, parts: Iterable[TextPart]) -> str:
        """What is kept of these parts, each below its marker; empty where nothing is."""
        units = (unit for part in parts for unit in part.units if unit.kind in VERBATIM)
        return "\n\n".join(f"{self._marker(unit)}\n{self._of(unit)}" for unit in units)

    def text_of(self, part: TextPart) -> str:
        """The part as it stands in the source."""
        return self.text[slice(*part.span)]

    def work(self, part: TextPart) -> str:
        """What the rewriter is to rewrite."""
        return self._joined(part.units, marked=True)

    def source(self, parts: Iterable[TextPart]) -> str:
        """What these parts say, with its marker above each text that is kept."""
        units = [unit for part in parts for unit in part.units]
        return self._joined(units, marked=False)

    def restored(self, text: str) -> str:
        """`text` with what is kept in the places of its markers, blank lines around it."""
        units = (unit for part in self.parts for unit in part.units if unit.kind in VERBATIM)
        kept = {self._marker(unit): self._of(unit) for unit in units}
        put_back = self._place.sub(lambda found: f"\n\n{kept.get(found[1], found[1])}\n\n", text)
        return put_back.strip("\n")

    def gap_before(self, number: int, rewritten_before: str, rewritten: str) -> str:
        """What stands between the rewritten part of this number and the one before it."""
        before, here = self.parts[number - 1], self.parts[number]
        gap = self.text[before.span.end : here.span.start]
        kinds = {before.units[-1].kind, here.units[0].kind}
        if "item" in kinds and len(kinds) == 1 and gap.count("\n") == 1:
            return "\n"
        last, first = rewritten_before.splitlines()[-1:], rewritten.splitlines()[:1]
        in_a_block = not kinds & VERBATIM and "heading" not in kinds and gap.count("\n") < 2
        labelled = _LABELLED.match(rewritten) is not None
        if not in_a_block or any(map(_is_structure, [*last, *first])) or labelled:
            return "\n\n"
        return "" if _CJK.match(rewritten_before[-1:]) else " "

    def _of(self, unit: Unit) -> str:
        return self.text[unit.start : unit.end]

    def _marker(self, unit: Unit) -> str:
        return f"[[{self._word} {self._numbers[unit.start]}]]"

    def _joined(self, units: Sequence[Unit], *, marked: bool) -> str:
        said: list[str] = []
        for number, unit in enumerate(units):
            if number:
                said.append(self.text[units[number - 1].end : unit.start])
            text = self._of(unit)
            if unit.kind in VERBATIM:
                text = self._marker(unit) if marked else f"{self._marker(unit)}\n{text}"
            said.append(text)
        return "".join(said)


def documents_of(text: str, *, most: int) -> list[Span]:
    """Spans of the documents that a text is cut into so that none has more than `most` tokens,
    unless it is one block of code, table or formula, which is not cut."""
    if count_tokens(text) <= most:
        return [Span(0, len(text))]
    found: list[Span] = []
    units = list(_units(text, blocks_of(text), most, marked=False))
    for run in _runs(units, most):
        start = found[-1].end if found else 0
        found.append(Span(start, run[-1].end))
    if found:
        found[-1] = Span(found[-1].start, len(text))
    return found or [Span(0, len(text))]


def parts_of(text: str, blocks: Sequence[DocumentBlock], chunk_tokens: int) -> list[TextPart]:
    """The parts of a document, in order; every block is in one."""
    units = list(_units(text, blocks, chunk_tokens, marked=True))
    runs = list(_runs(units, chunk_tokens))
    if len(runs) > 1 and sum(unit.tokens for unit in runs[-1]) * SMALL < chunk_tokens:
        last = runs.pop()
        runs[-1] = [*runs[-1], *last]
    return [TextPart(tuple(run)) for run in runs]


def _units(
    text: str, blocks: Sequence[DocumentBlock], most: int, *, marked: bool
) -> Iterator[Unit]:
    """`marked`: what is kept weighs what its marker does. It is never cut, whatever its size."""
    for block in blocks:
        body = text[block.start : block.end]
        tokens = count_tokens(body)
        if block.kind in VERBATIM:
            yield Unit(*block, MARKER_TOKENS if marked else tokens)
        elif tokens <= most and block.kind != "paragraph":
            yield Unit(*block, tokens)
        else:
            for start, end in pieces(body, most):
                bare = start + len(body[start:end].rstrip())
                if bare > start:
                    size = count_tokens(body[start:end])
                    yield Unit(block.kind, block.start + start, block.start + bare, size)


def _runs(units: Sequence[Unit], most: int) -> Iterator[list[Unit]]:
    """Units together, up to `most` tokens; a heading begins a run rather than ends one."""
    run: list[Unit] = []
    size = 0
    for unit in units:
        full = size + unit.tokens > most
        if run and (full or (unit.kind == "heading" and size >= HEADING_AT * most)):
            cut = len(run) - _trailing_headings(run) or len(run)
            yield run[:cut]
            run = run[cut:]
            size = sum(one.tokens for one in run)
        run.append(unit)
        size += unit.tokens
    if run:
        yield run


def _trailing_headings(run: Sequence[Unit]) -> int:
    number = 0
    while number < len(run) and run[-1 - number].kind == "heading":
        number += 1
    return number


def _is_structure(line: str) -> bool:
    """Whether a line is a heading, an item, or of something that is kept."""
    found = blocks_of(line)
    return bool(found) and found[0].kind != "paragraph"
