"""What runs through the whole answer: openings of lines, order, repetition, frames, copied text."""

import random
import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Self

from synth.gym.instructions.answer import AnswerText, counted_words
from synth.gym.instructions.constraint import Constraint, Demand, features, spelled
from synth.gym.instructions.lengths import FLOWING
from synth.gym.instructions.words import vocabulary
from synth.matching.word_runs import words_of

_TITLE = re.compile(r"<<[^<>\n]+>>")
_SEPARATOR = "======"


def _named(text: str) -> frozenset[str]:
    """The words of a fixed text, which other constraints may not count or place."""
    return features(*(f"word:{word}" for word in words_of(text) if len(word) > 3))


class Acrostic(Constraint):
    """The first letters of the lines spell a word."""

    wordings = (
        'The first letters of the lines, read downwards, must spell "{word}".',
        'Write one line for each letter of "{word}"; each begins with its letter, in order.',
    )
    word: str

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(word=rng.choice(vocabulary("short")))

    def met(self, answer: AnswerText) -> bool:
        lines = answer.raw_lines
        if len(lines) != len(self.word):
            return False
        firsts = [next((sign for sign in line if sign.isalnum()), "") for line in lines]
        return "".join(firsts).lower() == self.word.lower()

    def demand(self) -> Demand:
        number = len(self.word)
        return Demand(
            takes=features("lines", "start", "line starts"),
            needs=spelled(self.word) | {"prose", "break"},
            bars=features("flowing", "lists", "fixed line"),
            least={"lines": number, "words": 2 * number, "characters": 20 * number},
            most={"lines": number, "paragraphs": number},
        )


class AlphabeticalSentences(Constraint):
    """The sentences begin with successive letters, from A on; there are at least so many."""

    wordings = (
        "Begin the first sentence with A, the second with B, and so on; write {least} or more"
        " sentences.",
        "The sentences must begin with the letters of the alphabet in order, from A on; write at"
        " least {least}.",
    )
    least: int
    """Sentences."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(least=rng.randint(3, 5))

    def met(self, answer: AnswerText) -> bool:
        if not self.least <= len(answer.sentences) <= 26:
            return False
        firsts = [
            next((sign for sign in sentence if sign.isalpha()), "") for sentence in answer.sentences
        ]
        return "".join(firsts).lower() == "abcdefghijklmnopqrstuvwxyz"[: len(firsts)]

    def demand(self) -> Demand:
        return Demand(
            takes=features("sentences", "start", "openings", "line starts", "paragraph start"),
            needs=spelled("abcde") | FLOWING,
            least={
                "sentences": self.least,
                "words": 4 * self.least,
                "characters": 30 * self.least,
            },
        )


class LineWords(Constraint):
    """The lines have certain numbers of words, one number a line."""

    wordings = (
        "Write {lines} lines with {counts} words, in this order.",
        "The answer must be {lines} lines; from the first to the last they have {counts} words.",
    )
    counts: tuple[int, ...]
    """Words of each line."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(counts=tuple(rng.randint(3, 8) for _ in range(rng.randint(3, 5))))

    def met(self, answer: AnswerText) -> bool:
        lines = answer.raw_lines
        if len(lines) != len(self.counts):
            return False
        return all(
            AnswerText(line).counts_words(count)
            for line, count in zip(lines, self.counts, strict=True)
        )

    def demand(self) -> Demand:
        number, words = len(self.counts), sum(self.counts)
        return Demand(
            takes=features("lines", "line lengths", "least words"),
            needs=features("prose", "spaced", "break"),
            bars=features("flowing", "lists", "fixed line", "long sentences"),
            least={"lines": number, "words": words},
            most={"lines": number, "words": words, "paragraphs": number},
        )

    def shown(self) -> Mapping[str, object]:
        return {"lines": len(self.counts), "counts": ", ".join(map(str, self.counts))}


class LinesGrow(Constraint):
    """There are at least so many lines, and each has more words than the one before it."""

    wordings = (
        "Write at least {least} lines, each with more words than the one before it.",
        "From line to line the number of words must grow; write {least} lines or more.",
    )
    least: int
    """Lines."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(least=rng.randint(3, 5))

    def met(self, answer: AnswerText) -> bool:
        counts = [len(counted_words(line)) for line in answer.raw_lines]
        return len(counts) >= self.least and all(one < other for one, other in pairwise(counts))

    def demand(self) -> Demand:
        return Demand(
            takes=features("line lengths"),
            needs=features("prose", "spaced", "break"),
            bars=features("flowing", "lists", "fixed line"),
            least={"lines": self.least, "words": 2 * self.least + 20},
            most={"lines": 8},
        )


class LinePrefix(Constraint):
    """Every line begins with a certain sign."""

    wordings = (
        "Begin every line with {prefix}.",
        'Each line that is not blank must start with "{prefix}".',
    )
    prefix: str

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(prefix=rng.choice(("~", "+++", "=>", "//", "@")))

    def met(self, answer: AnswerText) -> bool:
        lines = answer.raw_lines
        return bool(lines) and all(
            line.startswith(self.prefix) and any(map(str.isalnum, line)) for line in lines
        )

    def demand(self) -> Demand:
        return Demand(
            takes=features("line starts", "frame"),
            needs=features("prose"),
            bars=features("flowing", "lists", "fixed line"),
        )


class CopiedPassage(Constraint):
    """A given passage stands in the answer word for word."""

    wordings = (
        'Include this passage word for word: "{passage}"',
        'Somewhere in the answer, copy this exactly: "{passage}"',
    )
    passage: str
    """One sentence, or two."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(passage=rng.choice(vocabulary("passages")))

    def met(self, answer: AnswerText) -> bool:
        return " ".join(self.passage.split()) in " ".join(answer.text.split())

    def demand(self) -> Demand:
        marks = {f"mark:{mark}" for mark in ",;:!?-(" if mark in self.passage}
        words = len(self.passage.split())
        return Demand(
            takes=_named(self.passage) | marks | {"passage"},
            needs=spelled(self.passage)
            | marks
            | _named(self.passage)
            | features("prose", "upper", "lower", "repetition", "long sentences", "long words"),
            least={"words": words + 16, "sentences": 1},  # with some short sentences beside it
            uses={"words": words, "characters": len(self.passage)},
        )


class NoSentenceTwice(Constraint):
    """There are at least so many sentences, and none repeats another's words."""

    wordings = (
        "Write at least {least} sentences, and let no two be the same.",
        "Give {least} or more sentences without repeating one.",
    )
    held_by_rest = True
    least: int
    """Sentences."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(least=rng.randint(2, 6))

    def met(self, answer: AnswerText) -> bool:
        said = [tuple(words_of(sentence)) for sentence in answer.sentences]
        return len(said) >= self.least and len(said) == len(set(said))

    def demand(self) -> Demand:
        return Demand(
            takes=features("sentences", "frame"),
            needs=FLOWING,
            least={
                "sentences": self.least,
                "words": 4 * self.least,
                "characters": 30 * self.least,
            },
        )


class Postscript(Constraint):
    """The last line is a postscript that says something; it follows a text."""

    wordings = (
        "End with a postscript that begins with P.S.",
        'The last line must be a postscript; it begins with "P.S.".',
    )
    held_by_rest = True

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls()

    def met(self, answer: AnswerText) -> bool:
        last = answer.raw_lines[-1] if len(answer.raw_lines) > 1 else ""
        opening = last.lstrip("*_ ")
        return opening[:4].upper() in ("P.S.", "P.S:", "P.S ") and len(words_of(opening)) > 3

    def demand(self) -> Demand:
        return Demand(
            takes=features("end"),
            needs=features(
                "prose", "latin", "upper", "break", "fixed line", "letter:p", "letter:s"
            ),
            bars=features("flowing"),
            uses={"words": 5, "lines": 1, "characters": 30},
        )


class Framed(Constraint):
    """The last sentence has the words of the first, with something between them."""

    wordings = (
        "End with the same sentence as you begin with.",
        "The first and the last sentence must be the same.",
    )

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls()

    def met(self, answer: AnswerText) -> bool:
        if len(answer.sentences) < 3:
            return False
        return words_of(answer.sentences[0]) == words_of(answer.sentences[-1])

    def demand(self) -> Demand:
        return Demand(
            takes=features("start", "end", "frame", "openings", "word counts"),
            needs=FLOWING | {"repetition"},
            least={"sentences": 3, "words": 12, "characters": 90},
        )


class TitleLine(Constraint):
    """The first line is a title in double angular brackets, and a text follows."""

    wordings = (
        "Put a title in double angular brackets on the first line, such as <<My title>>.",
        "The first line must be a title of the form <<title>>, with the text below it.",
    )

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls()

    def met(self, answer: AnswerText) -> bool:
        lines = answer.raw_lines
        return (
            len(lines) > 1
            and _TITLE.fullmatch(lines[0].strip("*#_ ")) is not None
            and any(map(str.isalnum, lines[0]))
        )

    def demand(self) -> Demand:
        return Demand(
            takes=features("start"),
            needs=features("prose", "break", "fixed line"),
            bars=features("flowing"),
            uses={"words": 2, "lines": 1, "characters": 20},
        )


class TwoVersions(Constraint):
    """Two different answers, with a line of six equals signs between them."""

    wordings = (
        f"Give two different versions, with a line {_SEPARATOR} between them.",
        f"Write two answers that differ, parted by a line of six equals signs, {_SEPARATOR}.",
    )

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls()

    def met(self, answer: AnswerText) -> bool:
        parts = f"\n{answer.text}\n".split(f"\n{_SEPARATOR}\n")
        versions = [words_of(part) for part in parts]
        return len(versions) == 2 and all(versions) and versions[0] != versions[1]

    def demand(self) -> Demand:
        return Demand(
            takes=features("versions", "frame", "headings"),
            needs=features("prose", "break", "repetition", "markdown", "fixed line"),
            bars=features("flowing"),
            uses={"lines": 3, "words": 10, "characters": 60},
        )


KINDS: tuple[type[Constraint], ...] = (
    Acrostic,
    AlphabeticalSentences,
    LineWords,
    LinesGrow,
    LinePrefix,
    CopiedPassage,
    NoSentenceTwice,
    Postscript,
    Framed,
    TitleLine,
    TwoVersions,
)
