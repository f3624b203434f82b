"""A text taken apart once: headings, code, tables, formulas, and sentences of prose.

Blocks are those of `rephrasing.blocks`, so that what a rewriter is shown as code is code here, too.
Every scan is one pass over the text, or a pattern whose work at each place is bounded, so hostile
text costs no more than its length.
"""

import re
from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import Literal, NamedTuple

from synth.rephrasing.facts.marks import parted_marks
from synth.rephrasing.structure.blocks import blocks_of, heading_of

TextBlockKind = Literal["heading", "code", "table", "item", "prose"]

MIN_CELL = 5
"""Words of a table's cell that is read as a paragraph."""

_FENCE = re.compile(r"\s{0,3}(`{3,}|~{3,})")
_ITEM = re.compile(r"\s*(?:[-*+\u2022]|\(?\d{1,3}[.)]|\(?[a-z][.)])\s+(?=\S)")
_RULE = re.compile(r"[\s|:+=-]*$")
_CELL = re.compile(r"\||\s{3,}")
_STOP = re.compile(r"[.!?]+[\"')\]\u201d\u2019*_]*\s+|[\u3002\uff01\uff1f]+")
_SHORTENED = "e.g i.e etc vs cf dr mr mrs ms prof st fig no approx ca resp al inc z.b bzw"
_ABBREVIATED = frozenset(_SHORTENED.split())
_CJK = "\u3040-\u30ff\u3400-\u9fff"
_HAS_CJK = re.compile(f"[{_CJK}]")
_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")
_LETTERS = re.compile(r"[^\W\d_]+")
_WORD_OR_SIGN = re.compile(rf"[{_CJK}]|[^\W_{_CJK}]+(?:['\u2019][^\W_{_CJK}]+)*")


class TextBlock(NamedTuple):
    kind: TextBlockKind
    text: str
    """Without its marks. Lines of prose are joined by a blank; those of code are as they were."""


class Sentence(NamedTuple):
    text: str
    paragraph: int
    """Index among the paragraphs and list items of its text."""


class ReadText:
    """What the layers read of one text. Made once, each part when it is first asked for."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def blocks(self) -> list[TextBlock]:
        return list(_blocks(self.text))

    @cached_property
    def _parts(self) -> tuple[list[tuple[TextBlock, str]], list[str], list[str]]:
        """Blocks that hold prose, with what is left of each; formulas; code spans."""
        rests: list[tuple[TextBlock, str]] = []
        formulas: list[str] = []
        spans: list[str] = []
        for block in self.blocks:
            if block.kind != "code":
                rest, formulas_here, spans_here = parted_marks(block.text)
                formulas += formulas_here
                spans += spans_here
                rests.append((block, rest))
        return rests, formulas, spans

    @cached_property
    def formulas(self) -> list[str]:
        """What stands between formula marks, in order, without the marks."""
        return self._parts[1]

    @cached_property
    def spans(self) -> list[str]:
        """Inline code."""
        return self._parts[2]

    @cached_property
    def code(self) -> list[str]:
        return [block.text for block in self.blocks if block.kind == "code"]

    @cached_property
    def headings(self) -> list[str]:
        return [block.text for block in self.blocks if block.kind == "heading"]

    @cached_property
    def cells(self) -> list[str]:
        """Of all tables, in order."""
        return [c for b, rest in self._parts[0] if b.kind == "table" for c in cells_of(rest)]

    @cached_property
    def prose(self) -> str:
        """All paragraphs, a blank line between two; no code, formulas or headings."""
        return "\n\n".join(self.paragraphs)

    @cached_property
    def paragraphs(self) -> list[str]:
        """Of a table the cells that say something, a paragraph each."""
        return [
            part
            for block, rest in self._parts[0]
            if block.kind != "heading"
            for part in ([rest] if block.kind != "table" else cells_of(rest))
            if block.kind != "table" or len(part.split()) >= MIN_CELL
        ]

    @cached_property
    def stated(self) -> str:
        """Where facts are looked for: the prose and the cells of tables."""
        short = [cell for cell in self.cells if len(cell.split()) < MIN_CELL]
        return "\n\n".join([*self.paragraphs, *short])

    @cached_property
    def said(self) -> str:
        """What is stated, then the headings, a line each."""
        return "\n".join((self.stated, *self.headings))

    @cached_property
    def words(self) -> list[str]:
        """Of the prose, in lower case."""
        return [word for words in self.sentence_words for word in words]

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """Every word and its parts anywhere in the text, in lower case, code included."""
        return frozenset(re.findall(r"[^\W_]+", self.text.casefold().replace("'s", " ")))

    @cached_property
    def sentences(self) -> list[Sentence]:
        return [
            Sentence(sentence, index)
            for index, paragraph in enumerate(self.paragraphs)
            for sentence in sentences_of(paragraph)
        ]

    @cached_property
    def sentence_words(self) -> list[list[str]]:
        """Of each sentence, in lower case."""
        return [words_of(sentence.text) for sentence in self.sentences]

    @cached_property
    def squeezed(self) -> str:
        """The whole text as quotations and code are looked for in it: see `squeeze`."""
        return squeeze(self.text)


@lru_cache(maxsize=128)
def read_text(text: str) -> ReadText:
    """Kept a while, since every check of a part reads its source and its rewrite."""
    return ReadText(text)


_SQUEEZED = str.maketrans(
    {
        **dict.fromkeys('"\u201c\u201d\u00ab\u00bb\u201e', None),
        "\u2018": "'",
        "\u2019": "'",
        "\u2013": "-",
        "\u2014": "-",
        "\u2212": "-",
        "\u2026": "...",
        "*": None,
        "`": None,
    }
)


def squeeze(text: str) -> str:
    """Case, white space, kinds of dashes and quotation marks make no difference any more."""
    return "".join(text.translate(_SQUEEZED).casefold().split())


@lru_cache(maxsize=256)
def letter_runs(text: str) -> frozenset[str]:
    """Every run of letters that stands in it, as it is written."""
    return frozenset(_LETTERS.findall(text))


def cells_of(table: str) -> list[str]:
    rows = [row for row in table.splitlines() if not _RULE.fullmatch(row)]
    cells = (" ".join(part.split()) for row in rows for part in _CELL.split(row))
    return [cell for cell in cells if cell]


def words_of(text: str) -> list[str]:
    """In lower case. Each sign of Chinese and Japanese is a word."""
    pattern = _WORD_OR_SIGN if _HAS_CJK.search(text) else _WORD
    return pattern.findall(text.casefold())


def sentences_of(paragraph: str) -> list[str]:
    sentences: list[str] = []
    start = 0
    for stop in _STOP.finditer(paragraph):
        after = paragraph[stop.end() : stop.end() + 1]
        if stop[0][0] == "." and (
            after.islower()
            or _is_abbreviated(paragraph[max(start, stop.start() - 8) : stop.start()])
        ):
            continue
        sentences.append(paragraph[start : stop.end()].strip())
        start = stop.end()
    sentences.append(paragraph[start:].strip())
    return [sentence for sentence in sentences if sentence and _WORD.search(sentence)]


def _is_abbreviated(before: str) -> bool:
    """Whether the full stop after these characters belongs to a short form or an initial."""
    word = before.rpartition(" ")[2].strip("([\"'")
    return (len(word) == 1 and word.isalpha()) or word.lower() in _ABBREVIATED


def _blocks(text: str) -> Iterator[TextBlock]:
    for kind, start, end in blocks_of(text):
        raw = text[start:end]
        if kind == "heading":
            yield TextBlock("heading", heading_of(raw))
        elif kind == "code":
            yield TextBlock("code", _unfenced(text[text.rfind("\n", 0, start) + 1 : end]))
        elif kind == "table":
            yield TextBlock("table", raw)
        else:
            mark = _ITEM.match(raw) if kind == "item" else None
            said = (
                line.strip().removeprefix("> ")
                for line in raw[mark.end() if mark else 0 :].splitlines()
            )
            yield TextBlock("item" if mark else "prose", " ".join(line for line in said if line))


def _unfenced(code: str) -> str:
    lines = code.split("\n")
    if fence := _FENCE.match(lines[0]):
        closed = len(lines) > 1 and lines[-1].strip().startswith(fence[1])
        return "\n".join(lines[1 : -1 if closed else None])
    return code
