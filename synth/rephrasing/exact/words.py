"""Names, quotations, code and cells of tables that stand in the place of others."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from synth.rephrasing.exact.likeness import is_alike
from synth.rephrasing.exact.readings import PartPair
from synth.rephrasing.facts.names import names_of
from synth.rephrasing.facts.quotations import quotations_of, quoted_in
from synth.rephrasing.facts.text import ReadText, squeeze, words_of
from synth.rephrasing.fidelity.layers import code_kept

QUOTED_ALIKE = 0.6
"""How alike a quotation must be to one of the source for a change of it to count."""

SPAN_ALIKE = 0.5
"""The same of inline code."""

STEM = 4
"""Letters of a name by which "French" answers for "France"."""

_PEOPLES = (
    ("french", "france"),
    ("welsh", "wales"),
    ("danish", "denmark"),
    ("spanish", "spain"),
    ("dutch", "netherlands"),
    ("dutch", "holland"),
    ("greek", "greece"),
    ("swiss", "switzerland"),
    ("norwegian", "norway"),
    ("finnish", "finland"),
    ("portuguese", "portugal"),
)
_OTHER_WORDS = {a: b for pair in _PEOPLES for a, b in (pair, pair[::-1])}
"""Peoples and countries that do not begin alike."""

_WORD = re.compile(r"[^\W_]+")
_NUMERIC = re.compile(r"[\d.,\s]+|\d[\w ]*")
_RULE = re.compile(r"[\s|:-]+")
_CELLS = re.compile(r"(?<!\\)\|")


def changed_names(pair: PartPair, known: set[str]) -> Iterator[str]:
    """A name of the source is gone, and one stands there that nothing in the source, nor among the
    words `known` from around it, begins like. In German every noun has a capital, so nothing is
    told there."""
    if pair.rewrite.language == "de":
        return
    source, rewrite = pair.source.text, pair.rewrite.text
    ours, theirs = names_of(source, pair.source.language), names_of(rewrite, pair.rewrite.language)
    before, after = _Words(known | words_in(source.text)), _Words(words_in(rewrite.text))
    lost = [name for key, name in ours.items() if key.isalpha() and not after.hold(key)]
    added = [
        name
        for key, name in theirs.items()
        if key.replace("-", "").isalpha() and not before.hold(key)
    ]
    if lost and added:
        yield f"the part names {', '.join(lost)}; the rewrite names {', '.join(added)} instead"


def words_in(text: str) -> set[str]:
    """Words and numbers, in small letters."""
    return set(_WORD.findall(text.casefold()))


class _Words:
    """The words of a text, for names to be looked up in."""

    def __init__(self, words: set[str]) -> None:
        self._words = words
        self._sorted = sorted(words)
        self._joined = "\n".join(self._sorted)

    def hold(self, key: str) -> bool:
        """Whether a word begins like each part of the name, or holds it where it is short."""
        return all(
            self._begin(part[: max(STEM, len(part) - 2)]) or _OTHER_WORDS.get(part) in self._words
            if len(part) >= STEM
            else part in self._joined
            for part in _WORD.findall(key)
        )

    def _begin(self, beginning: str) -> bool:
        at = bisect_left(self._sorted, beginning)
        return at < len(self._sorted) and self._sorted[at].startswith(beginning)


def changed_quotations(pair: PartPair) -> Iterator[str]:
    """Words in quotation marks that nearly are some of the source's and are not. Speech that a
    dialogue brings is like none of them."""
    source = pair.source.text
    quoted = [words_of(words) for words in quotations_of(source)]
    together = _bare(" ".join(quoted_in(source)))
    for words in quotations_of(pair.rewrite.text):
        if squeeze(words).strip(".,;:!?'") in source.squeezed or _bare(words) in together:
            continue
        own = words_of(words)
        windows = (window for one in quoted for window in _windows(one, own))
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
    gone = [span for span in source.spans if not _stands_whole(squeeze(span), rewrite.squeezed)]
    for span in dict.fromkeys(rewrite.spans):
        if _NUMERIC.fullmatch(span) or _stands_whole(squeeze(span), source.squeezed):
            continue
        near = next((one for one in gone if is_alike(span, one, at=SPAN_ALIKE)), None)
        if near is not None:
            yield f"the part has `{near}`; the rewrite has `{span}` instead"


def _stands_whole(span: str, text: str) -> bool:
    """Whether it is there and does not go on: `limit=100` does not stand in `limit=1000`. Blanks
    are gone from both, so that only figures tell where a word ends."""
    return re.search(rf"{re.escape(span)}(?!(?<=\d)\d)", text) is not None


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
