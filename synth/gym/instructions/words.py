"""Which words: required, forbidden, counted, first and last, in order, repeated.

A word is looked up as a whole run of letters, whatever its case: "rivers" is no "river".
"""

import random
import tomllib
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Self

from synth.gym.instructions.answer import AnswerText
from synth.gym.instructions.constraint import Constraint, Demand, features, spelled
from synth.gym.instructions.lengths import FLOWING
from synth.matching.word_runs import words_of

_FILE = Path(__file__).with_name("vocabulary.toml")


@cache
def vocabulary(name: str) -> tuple[str, ...]:
    """A list of `vocabulary.toml`."""
    found = tomllib.loads(_FILE.read_text())[name]
    return tuple(found.split() if isinstance(found, str) else found)


class WordsRequired(Constraint):
    """Each of some words stands in the answer."""

    wordings = (
        "Use the words {required}.",
        "The words {required} must all appear.",
        "Work the words {required} into the answer.",
    )
    held_by_rest = True
    required: tuple[str, ...]
    """At least two."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(required=tuple(rng.sample(vocabulary("nouns"), rng.randint(2, 4))))

    def met(self, answer: AnswerText) -> bool:
        return answer.has(self.required)

    def demand(self) -> Demand:
        return Demand(
            takes=features(*(f"word:{word}" for word in self.required)),
            needs=spelled(*self.required) | features(*(f"word:{word}" for word in self.required)),
            uses={"words": len(self.required), "characters": 10 * len(self.required)},
        )


class WordsForbidden(Constraint):
    """None of some words stands in the answer."""

    wordings = (
        "Do not use the words {forbidden}.",
        "Avoid the words {forbidden}.",
        "The words {forbidden} are not allowed.",
    )
    forbidden: tuple[str, ...]
    """At least two."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(forbidden=tuple(rng.sample(vocabulary("plain"), rng.randint(2, 4))))

    def met(self, answer: AnswerText) -> bool:
        return not answer.has_mixed_words and not any(map(answer.times, self.forbidden))

    def demand(self) -> Demand:
        return Demand(bars=features(*(f"word:{word}" for word in self.forbidden)))


class WordCount(Constraint):
    """A word stands in the answer exactly so many times."""

    wordings = (
        'Use the word "{word}" exactly {number} times.',
        'The word "{word}" must appear {number} times, no more and no fewer.',
    )
    held_by_rest = True
    word: str
    number: int
    """Times, at least two."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(word=rng.choice(vocabulary("nouns")), number=rng.randint(2, 4))

    def met(self, answer: AnswerText) -> bool:
        return answer.times(self.word) == self.number

    def demand(self) -> Demand:
        return Demand(
            takes=features(f"word:{self.word}"),
            needs=spelled(self.word) | {"repetition", f"word:{self.word}"},
            uses={"words": self.number, "characters": 10 * self.number},
        )


class WordAtLeast(Constraint):
    """A word stands in the answer at least so many times."""

    wordings = (
        'Use the word "{word}" at least {least} times.',
        'Mention the word "{word}" {least} times or more.',
    )
    held_by_rest = True
    word: str
    least: int
    """Times, at least two."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(word=rng.choice(vocabulary("nouns")), least=rng.randint(2, 4))

    def met(self, answer: AnswerText) -> bool:
        return answer.times(self.word) >= self.least

    def demand(self) -> Demand:
        return Demand(
            takes=features(f"word:{self.word}"),
            needs=spelled(self.word) | {"repetition", f"word:{self.word}"},
            uses={"words": self.least, "characters": 10 * self.least},
        )


class FirstWord(Constraint):
    """The first word of the answer is a given one."""

    wordings = (
        'Begin the answer with the word "{word}".',
        'The very first word must be "{word}".',
    )
    word: str

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(word=rng.choice(vocabulary("openings")))

    def met(self, answer: AnswerText) -> bool:
        return answer.runs[:1] == [self.word.lower()]

    def demand(self) -> Demand:
        return Demand(
            takes=features("start"),
            needs=spelled(self.word) | {"prose"},
            uses={"words": 1, "characters": 12},
        )


class LastWords(Constraint):
    """The answer ends on a given phrase; only punctuation may follow."""

    wordings = (
        'End the answer with the words "{phrase}".',
        'The last words must be "{phrase}", and nothing may follow them.',
    )
    phrase: str

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(phrase=rng.choice(vocabulary("endings")))

    def met(self, answer: AnswerText) -> bool:
        wanted = words_of(self.phrase)
        return answer.runs[-len(wanted) :] == wanted

    def demand(self) -> Demand:
        words = self.phrase.lower().split()
        return Demand(
            takes=features("end"),
            needs=spelled(self.phrase) | {"prose"} | {f"word:{word}" for word in words},
            least={"words": len(words)},
            uses={"words": len(words), "characters": 50},
        )


class WordsInOrder(Constraint):
    """Some words appear, each for the first time after the one before it."""

    wordings = (
        "Mention {ordered} in this order.",
        "The words {ordered} must appear, and for the first time in exactly this order.",
    )
    held_by_rest = True
    ordered: tuple[str, ...]
    """At least three."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(ordered=tuple(rng.sample(vocabulary("nouns"), rng.randint(3, 4))))

    def met(self, answer: AnswerText) -> bool:
        first: dict[str, int] = {}
        for place, run in enumerate(answer.runs):
            first.setdefault(run, place)
        places = [first.get(word.lower(), -1) for word in self.ordered]
        return places[0] >= 0 and all(one < other for one, other in pairwise(places))

    def demand(self) -> Demand:
        words = features(*(f"word:{word}" for word in self.ordered))
        return Demand(
            takes=words,
            needs=spelled(*self.ordered) | words,
            uses={"words": len(words), "characters": 10 * len(words)},
        )


class ParagraphOpening(Constraint):
    """A certain paragraph begins with a given word."""

    wordings = (
        'Paragraph {paragraph} must begin with the word "{word}"; blank lines part paragraphs.',
        'With paragraphs parted by blank lines, number {paragraph} begins with "{word}".',
    )
    paragraph: int
    """From 1."""
    word: str

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(paragraph=rng.randint(2, 3), word=rng.choice(vocabulary("openings")))

    def met(self, answer: AnswerText) -> bool:
        if len(answer.paragraphs) < self.paragraph:
            return False
        first = AnswerText(answer.paragraphs[self.paragraph - 1]).runs[:1]
        return first == [self.word.lower()]

    def demand(self) -> Demand:
        return Demand(
            takes=features("paragraph start"),
            needs=spelled(self.word) | FLOWING | {"break"},
            least={
                "paragraphs": self.paragraph,
                "lines": self.paragraph,
                "sentences": self.paragraph,
                "words": 4 * self.paragraph,
            },
        )


class WordLength(Constraint):
    """No word has more than so many letters."""

    wordings = (
        "Use no word of more than {most} letters.",
        "Every word must have {most} letters or fewer.",
    )
    most: int
    """Letters."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(most=rng.randint(7, 10))

    def met(self, answer: AnswerText) -> bool:
        return all(len(run) <= self.most for run in answer.run_counts)

    def demand(self) -> Demand:
        return Demand(
            takes=features("word length"),
            bars=features("long words"),
            needs=features("latin"),
        )


class DistinctOpenings(Constraint):
    """No two sentences begin with the same word."""

    wordings = (
        "No two sentences may begin with the same word.",
        "Begin every sentence with a different word.",
    )

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls()

    def met(self, answer: AnswerText) -> bool:
        openings: set[str] = set()
        for sentence in answer.sentences:
            (first,) = words_of(sentence)[:1] or ("",)
            if first in openings:
                return False
            openings.add(first)
        return len(openings) > 1

    def demand(self) -> Demand:
        return Demand(takes=features("openings"), needs=FLOWING, least={"sentences": 2, "words": 8})


class NoWordTwice(Constraint):
    """No word of more than so many letters stands twice in the answer."""

    wordings = (
        "No word of more than {letters} letters may appear twice.",
        "Use each word that has more than {letters} letters at most once.",
    )
    letters: int
    """Longer words may not be repeated."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(letters=rng.randint(4, 6))

    def met(self, answer: AnswerText) -> bool:
        return all(
            count == 1 or len(run) <= self.letters for run, count in answer.run_counts.items()
        )

    def demand(self) -> Demand:
        return Demand(
            takes=features("repetition"),
            bars=features("repetition"),
            needs=features("latin"),
            most={"words": 80},
        )


KINDS: tuple[type[Constraint], ...] = (
    WordsRequired,
    WordsForbidden,
    WordCount,
    WordAtLeast,
    FirstWord,
    LastWords,
    WordsInOrder,
    ParagraphOpening,
    WordLength,
    DistinctOpenings,
    NoWordTwice,
)
