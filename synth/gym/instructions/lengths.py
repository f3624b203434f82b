"""How long: words, sentences, paragraphs, lines and characters of an answer."""

import random
from typing import Self

from synth.gym.instructions.answer import AnswerText, counted_words, sentences_of_unit
from synth.gym.instructions.constraint import Constraint, Demand, features

FLOWING = features("prose", "flowing")
"""What is counted in sentences or paragraphs: prose without lists, headings and titles, of which
nobody knows whether they count."""

SPACED = features("prose", "spaced")
"""What is counted in words: a script that parts them."""

WORDS_A_SENTENCE = 4
"""So many a sentence has at least, where it is asked whether a length has room for it."""


class WordsAtLeast(Constraint):
    """The answer has at least so many words."""

    wordings = (
        "Write at least {least} words.",
        "The answer must have {least} words or more.",
        "Do not use fewer than {least} words.",
    )
    held_by_rest = True
    least: int
    """Words."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(least=rng.randrange(30, 151, 10))

    def met(self, answer: AnswerText) -> bool:
        return max(len(answer.words), answer.word_parts) >= self.least

    def demand(self) -> Demand:
        return Demand(takes=features("least words"), needs=SPACED, least={"words": self.least})


class WordsAtMost(Constraint):
    """The answer has at most so many words."""

    wordings = (
        "Use at most {most} words.",
        "Keep the answer to {most} words or fewer.",
        "The answer must not be longer than {most} words.",
    )
    most: int
    """Words."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(most=rng.randrange(30, 121, 10))

    def met(self, answer: AnswerText) -> bool:
        return min(len(answer.words), answer.word_parts) <= self.most

    def demand(self) -> Demand:
        return Demand(takes=features("most words"), needs=SPACED, most={"words": self.most})


class WordsBetween(Constraint):
    """The number of words lies between two numbers, both included."""

    wordings = (
        "Write between {least} and {most} words.",
        "The answer must have from {least} to {most} words.",
        "Aim for {least} to {most} words, no fewer and no more.",
    )
    held_by_rest = True
    least: int
    """Words."""
    most: int
    """Words."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        least = rng.randrange(20, 101, 10)
        return cls(least=least, most=least + rng.choice((10, 20, 30)))

    def met(self, answer: AnswerText) -> bool:
        ways = (len(answer.words), answer.word_parts)
        return any(self.least <= number <= self.most for number in ways)

    def demand(self) -> Demand:
        return Demand(
            takes=features("least words", "most words"),
            needs=SPACED,
            least={"words": self.least},
            most={"words": self.most},
        )


class WordsExactly(Constraint):
    """The answer has exactly so many words, compounds with a hyphen counted as one or as two."""

    wordings = (
        "Use exactly {number} words.",
        "The answer must be {number} words long, not one more or less.",
        "Write an answer of exactly {number} words.",
    )
    number: int
    """Words."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(number=rng.randint(8, 40))

    def met(self, answer: AnswerText) -> bool:
        return answer.counts_words(self.number)

    def demand(self) -> Demand:
        return Demand(
            takes=features("least words", "most words"),
            needs=SPACED,
            least={"words": self.number},
            most={"words": self.number},
        )


class SentencesExactly(Constraint):
    """The answer has exactly so many sentences."""

    wordings = (
        "Write exactly {number} sentences.",
        "The answer must consist of {number} sentences.",
        "Use {number} sentences, no more and no fewer.",
    )
    number: int
    """Sentences."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(number=rng.randint(2, 8))

    def met(self, answer: AnswerText) -> bool:
        return len(answer.sentences) == self.number

    def demand(self) -> Demand:
        return Demand(
            takes=features("sentences"),
            needs=FLOWING,
            least={
                "sentences": self.number,
                "words": self.number * WORDS_A_SENTENCE,
                "characters": self.number * 30,
            },
            most={"sentences": self.number, "paragraphs": self.number, "lines": self.number},
        )


class SentencesBetween(Constraint):
    """The number of sentences lies between two numbers, both included."""

    wordings = (
        "Write between {least} and {most} sentences.",
        "The answer must have at least {least} and at most {most} sentences.",
    )
    held_by_rest = True
    least: int
    """Sentences."""
    most: int
    """Sentences."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        least = rng.randint(2, 6)
        return cls(least=least, most=least + rng.randint(1, 3))

    def met(self, answer: AnswerText) -> bool:
        return self.least <= len(answer.sentences) <= self.most

    def demand(self) -> Demand:
        return Demand(
            takes=features("sentences"),
            needs=FLOWING,
            least={
                "sentences": self.least,
                "words": self.least * WORDS_A_SENTENCE,
                "characters": self.least * 30,
            },
            most={"sentences": self.most, "paragraphs": self.most, "lines": self.most},
        )


class SentenceLength(Constraint):
    """No sentence has more than so many words."""

    wordings = (
        "No sentence may have more than {most} words.",
        "Keep every sentence to at most {most} words.",
    )
    most: int
    """Words of a sentence."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(most=rng.randint(8, 18))

    def met(self, answer: AnswerText) -> bool:
        return bool(answer.sentences) and all(
            len(counted_words(sentence)) <= self.most for sentence in answer.sentences
        )

    def demand(self) -> Demand:
        return Demand(
            takes=features("sentence length", "sentences"),
            needs=SPACED | FLOWING,
            bars=features("long sentences"),
            least={"sentences": 1},
        )


class ParagraphsExactly(Constraint):
    """Blank lines part the answer into exactly so many paragraphs."""

    wordings = (
        "Write exactly {number} paragraphs, with a blank line between them.",
        "The answer must have {number} paragraphs, parted by blank lines.",
    )
    number: int
    """Paragraphs."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(number=rng.randint(2, 4))

    def met(self, answer: AnswerText) -> bool:
        return len(answer.paragraphs) == self.number

    def demand(self) -> Demand:
        return Demand(
            takes=features("paragraphs"),
            needs=FLOWING | {"break"},
            least={
                "paragraphs": self.number,
                "lines": self.number,
                "sentences": self.number,
                "words": self.number * WORDS_A_SENTENCE,
                "characters": self.number * 30,
            },
            most={"paragraphs": self.number},
        )


class ParagraphSentences(Constraint):
    """Every paragraph has exactly so many sentences."""

    wordings = (
        "Every paragraph must have exactly {number} sentences.",
        "Write paragraphs of exactly {number} sentences each, parted by blank lines.",
    )
    number: int
    """Sentences of a paragraph."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(number=rng.randint(2, 3))

    def met(self, answer: AnswerText) -> bool:
        counts = [
            len(sentences_of_unit(paragraph.replace("\n", " "))) for paragraph in answer.paragraphs
        ]
        return bool(counts) and all(count == self.number for count in counts)

    def demand(self) -> Demand:
        most = 4 * self.number  # of as many paragraphs as may be asked for beside it
        return Demand(
            takes=features("sentences"),
            needs=FLOWING,
            least={
                "sentences": most,
                "words": most * WORDS_A_SENTENCE,
                "characters": most * 30,
            },
        )


class LinesExactly(Constraint):
    """The answer has exactly so many lines that are not blank."""

    wordings = (
        "Write exactly {number} lines; blank lines do not count.",
        "The answer must have {number} lines that are not blank.",
    )
    number: int
    """Lines."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(number=rng.randint(3, 10))

    def met(self, answer: AnswerText) -> bool:
        return len(answer.raw_lines) == self.number

    def demand(self) -> Demand:
        return Demand(
            takes=features("lines"),
            needs=features("prose", "break"),
            bars=features("lists"),
            least={"lines": self.number, "words": self.number * 3},
            most={"lines": self.number, "paragraphs": self.number},
        )


class CharactersAtMost(Constraint):
    """The answer has at most so many characters, white space included."""

    wordings = (
        "Use at most {most} characters, spaces included.",
        "The whole answer must fit into {most} characters.",
    )
    most: int
    """Characters."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(most=rng.randrange(250, 801, 50))

    def met(self, answer: AnswerText) -> bool:
        return len(answer.text) <= self.most

    def demand(self) -> Demand:
        most = self.most // 8  # words of seven letters and what stands between them
        return Demand(
            takes=features("most characters"),
            most={"characters": self.most, "words": most, "lines": most // 3},
        )


KINDS: tuple[type[Constraint], ...] = (
    WordsAtLeast,
    WordsAtMost,
    WordsBetween,
    WordsExactly,
    SentencesExactly,
    SentencesBetween,
    SentenceLength,
    ParagraphsExactly,
    ParagraphSentences,
    LinesExactly,
    CharactersAtMost,
)
