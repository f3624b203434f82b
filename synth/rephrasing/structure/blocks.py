"""The structure of a text: headings, paragraphs, list items, code, tables, formulas.

Markdown, reStructuredText and plain text are read alike, line by line, in linear time. Blocks are
spans of the text in order; between them lies white space alone, so nothing of the text is lost.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

BlockKind = Literal["heading", "paragraph", "item", "code", "table", "formula"]

VERBATIM: frozenset[BlockKind] = frozenset({"code", "table", "formula"})
"""Kinds that are carried over as they are."""

PROSE_SHARE = 0.88
"""Letters, spaces and plain punctuation among the characters of indented prose, at least."""

CODE_SHARE = 0.015
"""Marks that programs and grammars are full of, in indented prose, at most."""

PROSE_WORDS = 4.0
"""Words a line in indented prose of several lines, at least, on average."""


class DocumentBlock(NamedTuple):
    kind: BlockKind
    start: int
    end: int


class _Line(NamedTuple):
    start: int
    text: str
    """Without its end of line and trailing white space."""

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def indent(self) -> int:
        return len(self.text) - len(self.text.lstrip())


_FENCE = re.compile(r"\s{0,3}(`{3,}|~{3,})")
_ATX = re.compile(r"\s{0,3}#{1,6}\s+\S")
_UNDERLINE = re.compile(r"([=\-~^\"*+#'`:.<>_])\1{2,}")
_ITEM = re.compile(r"\s*(?:[-*+\u2022]|\(?\d{1,3}[.)]|\(?[a-z][.)])\s+\S")
_GRID = re.compile(r"\s*\+(?:[-=]+\+){1,}|\s*={2,}(?:\s+={2,})+")
_MATH_OPEN = re.compile(r"\s*(\$\$|\\\[|\\begin\{([A-Za-z*]+)\})")
_PROMPT = re.compile(r"\s*>>>\s?")


def blocks_of(text: str) -> list[DocumentBlock]:
    """Every block of the text, in order."""
    lines = list(_lines(text))
    found: list[DocumentBlock] = []
    at = 0
    while at < len(lines):
        if not lines[at].text:
            at += 1
            continue
        kind, end = _block_at(lines, at)
        last = end - 1
        while not lines[last].text:
            last -= 1
        found.append(DocumentBlock(kind, lines[at].start, lines[last].end))
        at = end
    return found


def heading_of(text: str) -> str:
    """The words of a heading block, without the marks that make it one."""
    for line in text.splitlines():
        words = line.strip().strip("#").strip()
        if words and not _UNDERLINE.fullmatch(words):
            return words
    return text.strip()


def _lines(text: str) -> Iterator[_Line]:
    start = 0
    for line in text.splitlines(keepends=True):
        yield _Line(start, line.rstrip())
        start += len(line)


def _block_at(lines: Sequence[_Line], at: int) -> tuple[BlockKind, int]:
    """Kind of the block that begins at a line with text, and the line after it."""
    line = lines[at].text
    if fence := _FENCE.match(line):
        return "code", _fence_end(lines, at, fence[1])
    if opened := _MATH_OPEN.match(line):
        return "formula", _formula_end(lines, at, opened)
    if _PROMPT.match(line):
        return "code", _while(lines, at, lambda one: bool(one.text))
    if _is_table(lines, at):
        return "table", _while(lines, at, _in_table)
    if _ATX.match(line):
        return "heading", at + 1
    if end := _underlined(lines, at):
        return "heading", end
    if _ITEM.match(line):
        return "item", _item_end(lines, at)
    if lines[at].indent >= 2 and not _is_prose(lines, at):
        return "code", _code_end(lines, at)
    return "paragraph", _paragraph_end(lines, at)


def _while(lines: Sequence[_Line], at: int, goes_on: Callable[[_Line], bool]) -> int:
    end = at + 1
    while end < len(lines) and goes_on(lines[end]):
        end += 1
    return end


def _fence_end(lines: Sequence[_Line], at: int, fence: str) -> int:
    """After the closing fence; a fence that nothing closes lasts to the end."""
    for end in range(at + 1, len(lines)):
        bare = lines[end].text.strip()
        if len(bare) >= len(fence) and not bare.strip(fence[0]):
            return end + 1
    return len(lines)


def _formula_end(lines: Sequence[_Line], at: int, opened: re.Match[str]) -> int:
    """After the line that closes it; to the next blank line where none does."""
    close = {"$$": "$$", "\\[": "\\]"}.get(opened[1], f"\\end{{{opened[2]}}}")
    if close in lines[at].text[opened.end() :]:
        return at + 1
    end = _while(lines, at, lambda one: bool(one.text))
    for number in range(at + 1, end):
        if close in lines[number].text:
            return number + 1
    return end


def _is_table(lines: Sequence[_Line], at: int) -> bool:
    if _GRID.fullmatch(lines[at].text):
        return True
    rows = [row.text.strip() for row in lines[at : at + 2]]
    return len(rows) == 2 and all(len(r) > 1 and r[0] == r[-1] == "|" for r in rows)


def _in_table(line: _Line) -> bool:
    return bool(line.text)


def _underlined(lines: Sequence[_Line], at: int) -> int | None:
    """The line after a title with a rule below it, or above and below it; None for no title."""
    for title in (at, at + 1):
        if title + 1 >= len(lines):
            return None
        above, words, rule = title > at, lines[title].text.strip(), lines[title + 1].text.strip()
        if above and not _UNDERLINE.fullmatch(lines[at].text.strip()):
            return None
        if not words or _UNDERLINE.fullmatch(words):
            continue
        if _UNDERLINE.fullmatch(rule) and len(rule) * 2 >= len(words) and len(words) <= 200:
            return title + 2
    return None


def _item_end(lines: Sequence[_Line], at: int) -> int:
    """With its further lines and paragraphs that are indented below it, but no item within."""
    own = lines[at].indent
    end = at + 1
    while end < len(lines):
        line = lines[end]
        if not line.text:
            follows = end + 1 < len(lines) and lines[end + 1].text
            if not follows or lines[end + 1].indent <= own or _begins(lines, end + 1):
                return end
            if not _is_prose(lines, end + 1):
                return end
        elif _begins(lines, end) or _ATX.match(line.text):
            return end
        end += 1
    return end


def _begins(lines: Sequence[_Line], at: int) -> bool:
    """Whether another kind of block than plain text begins here."""
    line = lines[at].text
    marks = (_ITEM, _FENCE, _MATH_OPEN, _PROMPT)
    return any(mark.match(line) for mark in marks) or _is_table(lines, at)


def _code_end(lines: Sequence[_Line], at: int) -> int:
    """After indented code, whose parts may be parted by blank lines."""
    end = at + 1
    while end < len(lines):
        if lines[end].text:
            if lines[end].indent < lines[at].indent:
                return end
        elif end + 1 < len(lines) and lines[end + 1].text and _is_prose(lines, end + 1):
            return end
        end += 1
    return end


def _paragraph_end(lines: Sequence[_Line], at: int) -> int:
    end = at + 1
    while end < len(lines) and lines[end].text:
        if _begins(lines, end) or _ATX.match(lines[end].text):
            return end
        end += 1
    return end


def _is_prose(lines: Sequence[_Line], at: int) -> bool:
    """Whether the lines from here to a blank one are said rather than coded."""
    said = [line.text.strip() for line in lines[at : _while(lines, at, lambda one: bool(one.text))]]
    whole = " ".join(said)
    plain = sum(c.isalpha() or c in " .,;:'\u2019!?-" for c in whole)
    marks = sum(c in "=|{}<>;\\" for c in whole)
    ends = whole.rstrip("\"')*`").endswith((".", "!", "?", ":", "\u3002"))
    many = len(whole.split()) >= PROSE_WORDS * len(said)
    looks = plain >= PROSE_SHARE * len(whole) and marks <= CODE_SHARE * len(whole)
    return looks and (many or ends)
