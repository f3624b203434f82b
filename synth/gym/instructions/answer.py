"""An answer read once: its lines, paragraphs, sentences, words and marks, each in linear time.

Sentences are cut by `synth.rephrasing.structure.sentences`, words for look-ups by
`synth.matching.word_runs`. What people may count in two ways is counted in both where a
constraint asks for an exact number.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Literal, NamedTuple

from synth.matching.word_runs import words_of
from synth.rephrasing.structure.sentences import sentences
from synth.rubrics.reading.locales import locale

LineKind = Literal[
    "blank", "code", "fence", "heading", "bullet", "numbered", "table", "rule", "quote", "text"
]

_BREAK = re.compile("\r\n?|[\u2028\u2029\x85\x0b\x0c]")
_RUN = re.compile(r"\S{1,1000}")
_UNSEEN = dict.fromkeys(map(ord, "\ufeff\u200b\u2060\u00ad"), None)
"""Signs without width that part no words, such as soft hyphens; joiners are not among them."""

_MIXED = re.compile("[a-zA-Z\u00c0-\u024f][\u0400-\u04ff]|[\u0400-\u04ff][a-zA-Z\u00c0-\u024f]")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([^`]*)$")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(\S.*)$")
_BULLET = re.compile(r"[ \t]*[-*+\u2022\u30fb][ \t]+(\S.*)$")
_NUMBERED = re.compile(r"[ \t]*\(?(\d{1,3})(?:[.)][ \t]+|[\u3001\uff0e][ \t]*)(\S.*)$")
_QUOTE = re.compile(r" {0,3}>[ \t]?(.*)$")
_RULE_CELL = re.compile(r":?-+:?")
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_WORD = re.compile(rf"[{_CJK}]|[^\s\u2013\u2014\u2026{_CJK}]+")
_BETWEEN_PARTS = re.compile(r"[-/\u2010\u2011]")
_AROUND_WORD = (
    "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~\u201c\u201d\u2018\u2019\u201e\u201a\u00ab\u00bb\u2026"
    "\u3001\u3002\uff0c\uff01\uff1f\uff1b\uff1a\uff08\uff09\u300a\u300b\u300c\u300d\u300e\u300f"
    "\u3010\u3011\u00b7\u2022\u30fb\u00bf\u00a1"
)
_SMALL_OPENING = re.compile(r"([.!?]\s+)([a-z\u00df-\u024f\u0430-\u044f\u03b1-\u03c9])")
_ORDINAL = re.compile(r"(?:^|\s)\d{1,2}\.\s*$")
_MONTHS = frozenset(name for name in locale("de").months if len(name) > 2)
"""German, in lower case: what follows an ordinal with a full stop that ends no sentence."""


class AnswerLine(NamedTuple):
    kind: LineKind
    text: str
    """Without the mark that makes it a heading, an item or a quotation."""
    mark: str = ""
    """Of a heading its number signs, of an item its number, of an opening fence its language."""


class AnswerTable(NamedTuple):
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class AnswerText:
    """What constraints read of one answer; each part is made when it is first asked for."""

    def __init__(self, text: str) -> None:
        broken = _BREAK.sub("\n", text)
        self.text = _in_form("NFC", broken.translate(_UNSEEN)).strip()

    @cached_property
    def raw_lines(self) -> list[str]:
        """Lines that hold more than white space."""
        return [line.strip() for line in self.text.split("\n") if line.strip()]

    @cached_property
    def _read(self) -> tuple[list[AnswerLine], list[AnswerTable]]:
        return _read(self.text.split("\n"))

    @property
    def lines(self) -> list[AnswerLine]:
        """All of them, blank ones too, as Markdown takes them."""
        return self._read[0]

    @property
    def tables(self) -> list[AnswerTable]:
        return self._read[1]

    def of_kind(self, kind: LineKind) -> list[AnswerLine]:
        """The lines of one kind."""
        return [line for line in self.lines if line.kind == kind]

    @cached_property
    def paragraphs(self) -> list[str]:
        """What blank lines part, headings and rules apart; the lines of each as they are."""
        found: list[list[str]] = [[]]
        for line, raw in zip(self.lines, self.text.split("\n"), strict=True):
            if line.kind == "blank":
                found.append([])
            elif line.kind not in ("heading", "rule"):
                found[-1].append(raw.strip())
        return ["\n".join(lines) for lines in found if lines]

    @cached_property
    def sentences(self) -> list[str]:
        """Of paragraphs and items; headings, tables and code hold none."""
        return [sentence for unit in self._units for sentence in sentences_of_unit(unit)]

    @property
    def _units(self) -> Iterator[str]:
        """What no sentence goes beyond: an item, or the lines of a paragraph together."""
        together: list[str] = []
        for line in (*self.lines, AnswerLine("blank", "")):
            if line.kind in ("text", "quote") and line.text.strip():
                together.append(line.text.strip())
                continue
            if together:
                yield " ".join(together)
                together = []
            if line.kind in ("bullet", "numbered"):
                yield line.text

    @cached_property
    def said(self) -> str:
        """The text without the marks of its lines."""
        return "\n".join(
            line.text.replace("|", " ") if line.kind == "table" else line.text
            for line in self.lines
            if line.kind not in ("fence", "rule")
        )

    @cached_property
    def words(self) -> list[str]:
        """As people count them: what white space and dashes part; of Chinese and Japanese each
        character. The numbers of a list are none."""
        return counted_words(self.said)

    @cached_property
    def word_parts(self) -> int:
        """Number of words where the parts of `well-known` are two."""
        return sum(
            len([part for part in _BETWEEN_PARTS.split(word) if part.strip(_AROUND_WORD)])
            for word in self.words
        )

    def counts_words(self, number: int) -> bool:
        """Whether there are so many, in one way of counting or the other."""
        return number in (len(self.words), self.word_parts)

    @cached_property
    def _plain(self) -> str:
        """With plain letters for wide, bold and joined ones, so that none hides behind another."""
        return _in_form("NFKC", self.text)

    @cached_property
    def runs(self) -> list[str]:
        """Runs of letters and digits in lower case: where words are looked up."""
        return words_of(self._plain)

    @cached_property
    def has_mixed_words(self) -> bool:
        """Whether letters of the Latin and the Cyrillic script stand beside each other in a word,
        as where one is to pass for the other."""
        return not self.text.isascii() and _MIXED.search(self._plain) is not None

    @cached_property
    def run_counts(self) -> Counter[str]:
        return Counter(self.runs)

    @cached_property
    def letters(self) -> Counter[str]:
        """Of the text in lower case, accents as they are; wide letters and the like are plain."""
        return Counter(self._plain.lower())

    @cached_property
    def letters_as_written(self) -> Counter[str]:
        """Every character, capitals and small letters apart."""
        return Counter(self.text)

    @cached_property
    def bold(self) -> list[str]:
        """What stands between two asterisks and two, within a line."""
        found: list[str] = []
        for line in self.raw_lines:
            parts = line.split("**")
            inside = (parts[at] for at in range(1, len(parts) - 1, 2))
            found += [part for part in inside if part and part == part.strip() and part.strip("*")]
        return found

    @cached_property
    def quotations(self) -> list[str]:
        """What stands in double quotation marks of any kind, none going beyond its line."""
        return [found for line in self.raw_lines for found in _quotations(line)]

    def has(self, words: Sequence[str]) -> bool:
        """Whether each of the words stands in it, whatever its case."""
        return all(self.times(word) for word in words)

    def times(self, word: str) -> int:
        """How often a word stands in it as a whole word, whatever its case."""
        return self.run_counts[word.lower()]


def sentences_of_unit(unit: str) -> list[str]:
    """The sentences of a paragraph that is one line, those with a letter or digit; emphasis marks
    do not stand between a full stop and what follows it."""
    plain = unit.replace("*", "").replace("`", "")
    if not any(map(str.isupper, plain)):  # a text without capitals has sentences, too
        plain = _SMALL_OPENING.sub(_with_capital, plain)
    found: list[list[str]] = []
    for start, end in sentences(plain):
        piece = plain[start:end]
        if found and _goes_on(found[-1][-1], piece):
            found[-1].append(piece)
        elif any(map(str.isalnum, piece)):
            found.append([piece])
    return ["".join(pieces).strip() for pieces in found]


def counted_words(text: str) -> list[str]:
    """The words as people count them, without what stands around them."""
    stripped = (found.strip(_AROUND_WORD) for found in _WORD.findall(text))
    return [word for word in stripped if any(map(str.isalnum, word))]


def _with_capital(found: re.Match[str]) -> str:
    capital = found[2].upper()
    return found[1] + (capital if len(capital) == 1 else found[2])


def _in_form(form: Literal["NFC", "NFKC"], text: str) -> str:
    """The text normalised token by token: with a long run of marks it would take quadratic time."""
    if text.isascii():
        return text
    return _RUN.sub(lambda run: unicodedata.normalize(form, run[0]), text)


def _goes_on(before: str, after: str) -> bool:
    """Whether "3." and "Mai" were taken apart."""
    if not _ORDINAL.search(before[-8:]):
        return False
    first = re.match(r"\w+", after)
    return first is not None and first[0].lower() in _MONTHS


def _cells(line: str) -> tuple[str, ...]:
    return tuple(
        cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")
    )


def _is_delimiter(line: str) -> bool:
    return "|" in line and all(_RULE_CELL.fullmatch(cell) for cell in _cells(line))


def _read(raw: Sequence[str]) -> tuple[list[AnswerLine], list[AnswerTable]]:
    lines: list[AnswerLine] = []
    tables: list[AnswerTable] = []
    fence = ""
    rows: list[tuple[str, ...]] | None = None  # of the table that is being read
    for at, line in enumerate(raw):
        following = raw[at + 1] if at + 1 < len(raw) else ""
        opened = _FENCE.match(line)
        if fence:
            closes = opened and opened[1].startswith(fence) and not opened[2].strip()
            lines.append(AnswerLine("fence", "") if closes else AnswerLine("code", line))
            fence = "" if closes else fence
            continue
        if rows is not None and "|" in line and not opened:
            rows.append(_cells(line))
            lines.append(AnswerLine("table", "" if _is_delimiter(line) else line))
            continue
        if rows is not None:
            tables.append(AnswerTable(rows[0], tuple(rows[2:])))
            rows = None
        if opened:
            fence = opened[1]
            lines.append(AnswerLine("fence", "", opened[2].strip()))
        elif (
            "|" in line and _is_delimiter(following) and len(_cells(line)) == len(_cells(following))
        ):
            rows = [_cells(line)]
            lines.append(AnswerLine("table", line))
        else:
            lines.append(_plain_line(line, following, lines[-1] if lines else None))
    if rows is not None:
        tables.append(AnswerTable(rows[0], tuple(rows[2:])))
    return lines, tables


def _plain_line(line: str, following: str, before: AnswerLine | None) -> AnswerLine:
    """A line outside tables and code."""
    bare = line.replace(" ", "").strip()
    if not bare:
        return AnswerLine("blank", "")
    if len(bare) > 2 and bare.strip(bare[0]) == "" and bare[0] in "-*_=":
        if before is not None and before.kind == "heading" and not before.mark:
            return AnswerLine("rule", "")  # it underlines the heading
        if bare[0] != "=":
            return AnswerLine("rule", "")
    if found := _HEADING.match(line):
        return AnswerLine("heading", found[2].strip().rstrip("#").rstrip(), found[1])
    if found := _BULLET.match(line):
        return AnswerLine("bullet", found[1].strip())
    if found := _NUMBERED.match(line):
        return AnswerLine("numbered", found[2].strip(), found[1])
    if found := _QUOTE.match(line):
        return AnswerLine("quote", found[1].strip())
    rule = following.strip()
    underlined = len(rule) > 2 and rule[0] in "=-" and not rule.strip(rule[0])
    if underlined and (before is None or before.kind == "blank"):
        return AnswerLine("heading", line.strip())
    return AnswerLine("text", line.strip())


_CLOSES = {
    "\u201c": "\u201d",
    "\u00ab": "\u00bb",
    "\u00bb": "\u00ab",
    "\u201e": "\u201c\u201d",
    "\u300c": "\u300d",
    "\u300e": "\u300f",
    '"': '"',
}


def _quotations(line: str) -> Iterator[str]:
    start, closing = 0, ""
    for at, sign in enumerate(line):
        if closing:
            if sign in closing:
                if line[start:at].strip():
                    yield line[start:at]
                closing = ""
        elif sign in _CLOSES:
            start, closing = at + 1, _CLOSES[sign]
