"""Which marks: forbidden, counted, last, around the whole; digits, quotations and emoji.

A mark counts in its wide form too: the Chinese comma is a comma.
"""

import random
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Self

from synth.gym.instructions.answer import AnswerText
from synth.gym.instructions.constraint import Constraint, Demand, features

MARKS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        ",": ("comma", ",\uff0c\u3001\u060c"),
        ";": ("semicolon", ";\uff1b\u061b"),
        ":": ("colon", ":\uff1a"),
        "!": ("exclamation mark", "!\uff01"),
        "?": ("question mark", "?\uff1f\u061f"),
        "-": ("hyphen", "-\u2010\u2011"),
        "(": ("opening bracket", "(\uff08"),
    }
)
"""Mark -> what it is called, and all its forms."""

_EMOJI = (
    "\u231a\u231b\u23e9-\u23ec\u23f0\u23f3\u25fd\u25fe\u2614\u2615\u2648-\u2653\u267f\u2693\u26a1"
    "\u26aa\u26ab\u26bd\u26be\u26c4\u26c5\u26ce\u26d4\u26ea\u26f2\u26f3\u26f5\u26fa\u26fd\u2705"
    "\u270a\u270b\u2728\u274c\u274e\u2753-\u2755\u2757\u2795-\u2797\u27b0\u27bf\u2b1b\u2b1c\u2b50"
    "\u2b55\U0001f300-\U0001f3fa\U0001f400-\U0001f6ff\U0001f7e0-\U0001f7eb\U0001f900-\U0001faff"
    "\U0001f18e\U0001f191-\U0001f19a\U0001f0cf\U0001f004"
)
_PICTURE = (
    rf"(?:[{_EMOJI}]\ufe0f?|[\u00a9\u00ae\u203c-\u2bff\u3030\u303d\u3297\u3299]\ufe0f)"
    "[\U0001f3fb-\U0001f3ff]?"
)
_ONE_EMOJI = re.compile(
    rf"[\U0001f1e6-\U0001f1ff]{{2}}|[0-9#*]\ufe0f?\u20e3|{_PICTURE}(?:\u200d{_PICTURE})*"
)
"""Flags, key caps, and pictures; what a joiner joins is one."""

_WRAPS = (('"', '"'), ("\u201c", "\u201d"), ("\u201e", "\u201c"), ("\u00ab", "\u00bb"))


def marks_in(answer: AnswerText, mark: str) -> int:
    """How often a mark of `MARKS` stands in the answer, in any of its forms."""
    return sum(answer.letters_as_written[form] for form in MARKS[mark][1])


class MarkForbidden(Constraint):
    """A punctuation mark does not stand in the answer."""

    wordings = (
        "Use no {name} anywhere.",
        "The answer must not contain a single {name}.",
        "Write without any {name}.",
    )
    mark: str
    """One of `MARKS`."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(mark=rng.choice(",;:!?-("))

    def met(self, answer: AnswerText) -> bool:
        return marks_in(answer, self.mark) == 0

    def demand(self) -> Demand:
        return Demand(takes=features(f"mark:{self.mark}"), bars=features(f"mark:{self.mark}"))

    def shown(self) -> Mapping[str, object]:
        return {"name": MARKS[self.mark][0]}


class MarkExactly(Constraint):
    """A punctuation mark stands in the answer exactly so many times."""

    wordings = (
        "Use exactly {number} {name}s.",
        "The answer must contain {number} {name}s, no more and no fewer.",
    )
    mark: str
    """One of `MARKS`."""
    number: int
    """Times, at least two."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(mark=rng.choice(",;!?"), number=rng.randint(2, 5))

    def met(self, answer: AnswerText) -> bool:
        return marks_in(answer, self.mark) == self.number

    def demand(self) -> Demand:
        sentences = self.number if self.mark in "!?" else 1
        return Demand(
            takes=features(f"mark:{self.mark}"),
            needs=features("prose", f"mark:{self.mark}"),
            least={
                "words": 4 * self.number,
                "sentences": sentences,
                "characters": 30 * self.number,
            },
        )

    def shown(self) -> Mapping[str, object]:
        return {"name": MARKS[self.mark][0], "number": self.number}


class EndsWithMark(Constraint):
    """The last character, closing quotation marks apart, is a certain mark."""

    wordings = (
        "The last character of the answer must be a {name}.",
        "End the answer with a {name}.",
    )
    mark: str
    """One of `MARKS`."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(mark=rng.choice("?!"))

    def met(self, answer: AnswerText) -> bool:
        end = answer.text[-40:].rstrip("\"'\u201d\u2019\u00bb*_ ")
        return end.endswith(tuple(MARKS[self.mark][1]))

    def demand(self) -> Demand:
        return Demand(
            takes=features("end", f"mark:{self.mark}"),
            needs=features("prose", f"mark:{self.mark}"),
            least={"words": 3, "sentences": 1},
        )

    def shown(self) -> Mapping[str, object]:
        return {"name": MARKS[self.mark][0]}


class NoDigits(Constraint):
    """No digit of any script stands in the answer; numbers are written in words."""

    wordings = (
        "Use no digits; write numbers in words.",
        "Digits are not allowed anywhere in the answer.",
    )

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls()

    def met(self, answer: AnswerText) -> bool:
        return not any(sign.isdigit() for sign in answer.letters_as_written)

    def demand(self) -> Demand:
        return Demand(takes=features("digits"), bars=features("digit"))


class QuotedWhole(Constraint):
    """One pair of double quotation marks stands around the whole answer, and none within it."""

    wordings = (
        "Put the whole answer in double quotation marks, and use none within it.",
        "Wrap the entire answer in one pair of double quotation marks.",
    )

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls()

    def met(self, answer: AnswerText) -> bool:
        text = answer.text
        if not text[1:-1].strip():
            return False
        return any(
            text[0] == opening
            and text[-1] == closing
            and not any(sign in text[1:-1] for sign in {opening, closing})
            for opening, closing in _WRAPS
        )

    def demand(self) -> Demand:
        return Demand(
            takes=features("end", "frame", "quotations"),
            needs=features("prose", "quotation", "flowing"),
        )


class QuotationsExactly(Constraint):
    """Exactly so many passages stand in double quotation marks."""

    wordings = (
        "Put exactly {number} phrases in double quotation marks.",
        "The answer must have {number} quotations in double quotation marks.",
    )
    held_by_rest = True
    number: int
    """Quotations, each within one line."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(number=rng.randint(2, 3))

    def met(self, answer: AnswerText) -> bool:
        return len(answer.quotations) == self.number

    def demand(self) -> Demand:
        return Demand(
            takes=features("quotations"),
            needs=features("prose", "quotation"),
            uses={"words": 2 * self.number, "characters": 20 * self.number},
        )

    def shown(self) -> Mapping[str, object]:
        return {"number": self.number}


class EmojiExactly(Constraint):
    """Exactly so many emoji stand in the answer; what is joined to one picture is one."""

    wordings = (
        "Use exactly {number} emoji.",
        "The answer must contain {number} emoji, no more and no fewer.",
    )
    number: int
    """Emoji."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(number=rng.randint(2, 5))

    def met(self, answer: AnswerText) -> bool:
        if answer.text.isascii():
            return self.number == 0
        return sum(1 for _ in _ONE_EMOJI.finditer(answer.text)) == self.number

    def demand(self) -> Demand:
        return Demand(
            takes=features("emoji"),
            needs=features("prose", "beyond ascii"),
            uses={"characters": 4 * self.number},
        )


KINDS: tuple[type[Constraint], ...] = (
    MarkForbidden,
    MarkExactly,
    EndsWithMark,
    NoDigits,
    QuotedWhole,
    QuotationsExactly,
    EmojiExactly,
)
