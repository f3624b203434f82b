"""What the rewriter is given, and the sentences of the part that it is to rewrite.

Formulas, code spans, quotations and addresses become single signs first, so that no rule looks into
them and they come out as they went in.
"""

import re
from dataclasses import dataclass
from typing import Literal, NamedTuple

from offline_llm.rewriter.phrases import ENGLISH
from offline_llm.server.request import ChatRequest

_PARTS = "rewrite these parts"
_NUMBER = re.compile(r"Part (\d+):")
_HEADING = re.compile(r"## +(.+?)\s*")
_FENCE = re.compile(r"(`{4,})text")
_FIRST_SIGN = 0xF0000
SIGNS = "\U000f0000-\U000ffffd"
"""The signs that stand for what is kept, as a range of a character class."""

_KEPT = re.compile(
    r"\$\$.+?\$\$|\$[^$\n]+\$|\\\(.+?\\\)|(`+)[^`]+\1|\*\*[^*\n]+\*\*|\"[^\"\n]{1,200}\""
    r"|\u201c[^\u201d\n]{1,200}\u201d|\((?:[^()\n]|\([^()\n]*\)){1,200}\)|https?://\S*[\w/]"
)
_STRUCTURE = re.compile(r"\s*(?:\[\[\w+ \d+\]\]|#{1,6} .*|(?:\w+ )?[\w.]+\([^()]*\))")
"""A mark, a heading, or a signature on a line of its own."""
_RULE = re.compile(r"\s*([=\-~^\"*+#])\1{2,}\s*")
_ITEM = re.compile(r"(\s*(?:[-*+\u2022]|\(?\d{1,3}[.)]|\(?[a-z][.)])\s+)(\S.*)")
_END = re.compile(rf"(?<=[.!?{SIGNS}\u3002])\s+(?=[A-Z({SIGNS}*\[]|\d)")
_SHORTENED = re.compile(r"(?:\b(?:e\.g|i\.e|etc|cf|vs|no|fig|resp|approx|[A-Za-z])\.)$", re.I)
_GENRES = {
    "questions": re.compile(r"^\W*(?:Q|Question)\b.{0,4}:", re.MULTILINE),
    "code": re.compile(r"`[^`\n]+`(?!`)|\w\(\)|^ *>>> |\bmodule\b", re.MULTILINE),
    "howto": re.compile(r"^ *1[.)] |\bSteps?\b", re.MULTILINE),
    "narrative": re.compile(r"\b(?:[Hh]e|[Ss]he|her|his)\b"),
}

StretchKind = Literal["prose", "bullet", "structure"]


class RewriteRequest(NamedTuple):
    style: str
    perspective: str
    written: str
    parts: dict[str, str]
    """By their numbers."""


@dataclass(frozen=True)
class Stretch:
    """A paragraph, a list item, or a line that stays as it is."""

    kind: StretchKind
    text: str
    """On one line; of an item without its mark."""
    mark: str = ""
    sentences: tuple[str, ...] = ()
    """Of the text, once `Kept` has put its signs into it."""


class Kept:
    """Takes out what is not to be touched, and puts it back."""

    def __init__(self) -> None:
        self._pieces: list[str] = []

    def out(self, text: str) -> str:
        return _KEPT.sub(self._sign, text)

    def _sign(self, found: re.Match[str]) -> str:
        self._pieces.append(found[0])
        return chr(_FIRST_SIGN + len(self._pieces) - 1)

    def back(self, text: str) -> str:
        return re.sub(f"[{SIGNS}]", self._piece, text)

    def _piece(self, found: re.Match[str]) -> str:
        place = ord(found[0]) - _FIRST_SIGN
        return self._pieces[place] if place < len(self._pieces) else found[0]


def request_of(request: ChatRequest) -> RewriteRequest | None:
    """What is to be rewritten and how, None for a request of another kind."""
    for message in request.messages:
        if message["role"] == "user":
            found = _sections(message["content"])
            parts = {name: text for name, text in found.items() if name.isdecimal()}
            names = ("style", "perspective", "written so far")
            style, view, written = (found.get(name, "") for name in names)
            return RewriteRequest(style, view, written, parts) if parts else None
    return None


def genre_asked(request: ChatRequest) -> str | None:
    """The word for the text whose genre is asked for, by its marks; None where none is."""
    text = request.messages[-1]["content"]
    if "\n## Name its genre\n" not in text:
        return None
    return next((genre for genre, marks in _GENRES.items() if marks.search(text)), "explanation")


def _sections(text: str) -> dict[str, str]:
    """Heading in lower case, or number of a part, -> what stands below it. A heading inside a block
    is the block's."""
    found: dict[str, list[str]] = {}
    here: list[str] = []
    fence = ""
    for line in text.split("\n"):
        if fence:
            if line == fence:
                fence = ""
            else:
                here.append(line)
        elif opened := _FENCE.fullmatch(line):
            here.clear()
            fence = opened[1]
        elif heading := _HEADING.fullmatch(line):
            here = found.setdefault(heading[1].lower(), [])
        elif _PARTS in found and (number := _NUMBER.fullmatch(line)):
            here = found.setdefault(number[1], [])
        elif _PARTS not in found:
            here.append(line)
    return {name: "\n".join(lines).strip("\n") for name, lines in found.items()}


def stretches(part: str) -> list[Stretch]:
    """The part in order: paragraphs on one line each, items, headings and marks of kept blocks."""
    found: list[Stretch] = []
    lines = part.split("\n")
    is_open = False
    for number, line in enumerate(lines):
        below = lines[number + 1] if number + 1 < len(lines) else ""
        if not line.strip():
            is_open = False
        elif _RULE.fullmatch(line):  # below a title, or above one
            is_below = found and found[-1].kind == "structure" and number and lines[number - 1]
            if is_below and not is_open:
                found[-1] = Stretch("structure", f"{found[-1].text}\n{line.strip()}")
            else:
                found.append(Stretch("structure", line.strip()))
            is_open = False
        elif _STRUCTURE.fullmatch(line) or (_RULE.fullmatch(below) and not is_open):
            found.append(Stretch("structure", line.strip()))
        elif item := _ITEM.fullmatch(line):
            found.append(Stretch("bullet", item[2].strip(), item[1]))
            is_open = True
        elif is_open:
            last = found[-1]
            found[-1] = Stretch(last.kind, f"{last.text} {line.strip()}", last.mark)
        else:
            found.append(Stretch("prose", line.strip()))
            is_open = True
    return found


def sentences_of(text: str) -> list[str]:
    """Of a text in which `Kept` has put its signs."""
    found: list[str] = []
    for piece in _END.split(text.strip()):
        after_none = found and not re.search(rf"[.!?:\u3002]['\")]*[{SIGNS}]?$", found[-1])
        if found and (_SHORTENED.search(found[-1]) or after_none):
            found[-1] += f" {piece}"
        else:
            found.append(piece)
    return [piece for piece in found if piece]


def is_english(text: str) -> bool:
    """Whether rules about English words have a hold on it; what has few words counts as such."""
    bare = re.sub(f"[{SIGNS}]", " ", Kept().out(text))
    letters = [c for c in bare if c.isalpha()]
    if sum(c > "\u024f" for c in letters) * 4 > len(letters):
        return False
    words = re.findall(r"[^\W\d_]+", bare.lower())
    return len(words) < 6 or sum(word in ENGLISH for word in words) * 8 >= len(words)
