"""Quotations, code and cells of tables that stand in the place of others."""

import re
from collections.abc import Iterator, Sequence

from synth.rephrasing.exact.likeness import MOST_PIECES, is_alike
from synth.rephrasing.exact.readings import PartPair
from synth.rephrasing.facts.quotations import quotations_of, quoted_in
from synth.rephrasing.facts.text import ReadText, squeeze, words_of
from synth.rephrasing.fidelity.layers import code_kept

QUOTED_ALIKE = 0.6
"""How alike a quotation must be to one of the source for a change of it to count."""

SPAN_ALIKE = 0.5
"""The same of inline code."""

_NUMERIC = re.compile(r"[\d.,\s]+|\d[\w ]*")
_RULE = re.compile(r"[\s|:-]+")
_CELLS = re.compile(r"(?<!\\)\|")


def changed_quotations(pair: PartPair) -> Iterator[str]:
    """Words in quotation marks that nearly are some of the source's and are not. Speech that a
    dialogue brings is like none of them."""
    source = pair.source.text
    quoted = [words_of(words) for words in quotations_of(source)]
    together = _bare(" ".join(quoted_in(source)))
    new = [
        words
        for words in quotations_of(pair.rewrite.text)
        if squeeze(words).strip(".,;:!?'") not in source.squeezed and _bare(words) not in together
    ]
    for words in new[:MOST_PIECES]:
        own = words_of(words)
        windows = (window for one in quoted[:MOST_PIECES] for window in _windows(one, own))
        if any(is_alike(own, window, at=QUOTED_ALIKE) for window in windows):
            yield f'the part does not hold the quoted words "{words}"'


def _bare(words: str) -> str:
    """As quotations are compared that the text around them breaks up."""
    return re.sub(r"[.,]", "", squeeze(words))


def _windows(words: Sequence[str], like: Sequence[str]) -> Iterator[Sequence[str]]:
    """The words, and each run of them that is as long as `like`."""
    yield words
    for start in range(len(words) - len(like) + 1):
        yield words[start : start + len(like)]


def changed_code(pair: PartPair) -> Iterator[str]:
    """Blocks of code that the source does not have, and inline code that is nearly some of it."""
    source, rewrite = pair.source.text, pair.rewrite.text
    for block in code_kept(source, rewrite).added:
        yield f"the part has no such code: {block}"
    gone, new = _spans_without(source, rewrite), _spans_without(rewrite, source)
    for span in new:
        if _NUMERIC.fullmatch(span):
            continue
        near = next((one for one in gone if is_alike(span, one, at=SPAN_ALIKE)), None)
        if near is not None:
            yield f"the part has `{near}`; the rewrite has `{span}` instead"


def _spans_without(text: ReadText, other: ReadText) -> list[str]:
    """Inline code that the other text does not hold."""
    spans = dict.fromkeys(text.spans)
    return [s for s in spans if not _stands_whole(squeeze(s), other.squeezed)][:MOST_PIECES]


def _stands_whole(span: str, text: str) -> bool:
    """Whether it is there and does not go on: `limit=100` does not stand in `limit=1000`. Blanks
    are gone from both, so that only figures tell where a word ends."""
    at = text.find(span)
    while at >= 0:
        end = at + len(span)
        if not (span[-1:].isdigit() and text[end : end + 1].isdigit()):
            return True
        at = text.find(span, end)
    return False


def changed_cells(pair: PartPair) -> Iterator[str]:
    """Rows of a table of the source, told by its head and the first cell, with other cells. Several
    tables with one head count as one."""
    known: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for head, *rows in _tables(pair.source.text):
        known.setdefault(head, set()).update(rows)
    for head, *rows in _tables(pair.rewrite.text):
        ours = known.get(head, set())
        firsts = {row[0] for row in ours}
        for row in rows:
            if row[0] in firsts and row not in ours:
                yield f"the table has another row for {row[0]}"


def _tables(text: ReadText) -> list[list[tuple[str, ...]]]:
    """Rows of each table in Markdown, its head first, as cells are compared."""
    found = []
    for block in text.blocks:
        lines = block.text.splitlines() if block.kind == "table" else ()
        rows = [line for line in lines if "|" in line and not _RULE.fullmatch(line)]
        if rows:
            found.append(
                [tuple(map(squeeze, _CELLS.split(row.strip().strip("|")))) for row in rows]
            )
    return found
