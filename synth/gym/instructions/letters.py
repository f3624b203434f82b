"""Which letters: case, letters that are missing or frequent, script and language."""

import random
from collections.abc import Mapping
from types import MappingProxyType
from typing import Self

from confusable_homoglyphs.categories import alias

from synth.gym.instructions.answer import AnswerText
from synth.gym.instructions.constraint import Constraint, Demand, features
from synth.rephrasing.fidelity.language import LOOKED_AT, language_of

LANGUAGES: Mapping[str, str] = MappingProxyType(
    {
        "de": "German",
        "es": "Spanish",
        "fr": "French",
        "it": "Italian",
        "nl": "Dutch",
        "pl": "Polish",
        "zh": "Chinese",
    }
)
"""Code of ISO 639 -> name."""

SCRIPTS = ("Cyrillic", "Greek", "Hangul", "Arabic", "Devanagari")

MIN_LETTERS = 10
"""Fewer show no script."""


class AllLowercase(Constraint):
    """No letter is a capital."""

    wordings = (
        "Write everything in lower case; no capital letters.",
        "Use no capital letters anywhere.",
    )

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls()

    def met(self, answer: AnswerText) -> bool:
        return not any(sign.isupper() or sign.istitle() for sign in answer.letters_as_written)

    def demand(self) -> Demand:
        return Demand(takes=features("case"), bars=features("upper"), needs=features("latin"))


class AllUppercase(Constraint):
    """Every letter that has a case is a capital."""

    wordings = (
        "Write everything in capital letters.",
        "The whole answer must be in upper case.",
    )

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls()

    def met(self, answer: AnswerText) -> bool:
        return not any(sign.islower() for sign in answer.letters_as_written)

    def demand(self) -> Demand:
        return Demand(takes=features("case"), bars=features("lower"), needs=features("latin"))


class CapitalisedWords(Constraint):
    """Every word begins with a capital letter."""

    wordings = (
        "Begin every word with a capital letter.",
        "Write Like This: every word starts with a capital.",
    )

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls()

    def met(self, answer: AnswerText) -> bool:
        return not any(word[0].islower() for word in answer.words)

    def demand(self) -> Demand:
        return Demand(takes=features("case"), bars=features("lower"), needs=features("latin"))


class CapitalWords(Constraint):
    """At least so many words are wholly in capitals."""

    wordings = (
        "Write at least {least} words wholly in CAPITALS.",
        "At least {least} words must stand in capital letters throughout.",
    )
    least: int
    """Words of two letters or more."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(least=rng.randint(2, 5))

    def met(self, answer: AnswerText) -> bool:
        found = (word for word in answer.words if word.isupper())
        return sum(sum(map(str.isalpha, word)) > 1 for word in found) >= self.least

    def demand(self) -> Demand:
        return Demand(
            takes=features("case"),
            needs=features("latin", "upper", "prose"),
            uses={"words": self.least, "characters": 8 * self.least},
        )


class LetterForbidden(Constraint):
    """A letter does not stand in the answer, as a capital neither."""

    wordings = (
        'Do not use the letter "{letter}" anywhere.',
        'Write without the letter "{letter}", small or capital.',
    )
    letter: str
    """Small; with an accent it is another one."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(letter=rng.choice("bfgjkqvwxz"))

    def met(self, answer: AnswerText) -> bool:
        return not answer.letters[self.letter] and not answer.has_mixed_words

    def demand(self) -> Demand:
        return Demand(bars=features(f"letter:{self.letter}"), needs=features("latin"))


class LetterAtLeast(Constraint):
    """A letter stands in the answer at least so many times."""

    wordings = (
        'Use the letter "{letter}" at least {least} times.',
        'The letter "{letter}", small or capital, must occur {least} times or more.',
    )
    held_by_rest = True
    letter: str
    least: int
    """Times."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(letter=rng.choice("bfkpvwxz"), least=rng.randint(3, 8))

    def met(self, answer: AnswerText) -> bool:
        return answer.letters[self.letter] >= self.least

    def demand(self) -> Demand:
        return Demand(
            needs=features("latin", "prose", f"letter:{self.letter}"),
            uses={"words": self.least, "characters": 8 * self.least},
        )


class AsciiOnly(Constraint):
    """Every character is one of ASCII: no accents, curly quotes or emoji."""

    wordings = (
        "Use only ASCII characters: no accents, no curly quotes, no emoji.",
        "Every character of the answer must be plain ASCII.",
    )

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls()

    def met(self, answer: AnswerText) -> bool:
        return answer.text.isascii()

    def demand(self) -> Demand:
        return Demand(bars=features("beyond ascii"))


class WrittenIn(Constraint):
    """The answer is in a certain language, at its beginning and at its end."""

    wordings = (
        "Answer in {name}.",
        "Write the whole answer in {name}.",
        "The language of the answer must be {name}.",
    )
    language: str
    """A code of `LANGUAGES`."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(language=rng.choice(sorted(LANGUAGES)))

    def met(self, answer: AnswerText) -> bool:
        parts = {answer.text[:LOOKED_AT], answer.text[-LOOKED_AT:]}
        return {language_of(part) for part in parts} == {self.language}

    def demand(self) -> Demand:
        barred = features("english", "another script")
        if self.language == "zh":
            barred |= features("latin", "spaced")
        return Demand(
            takes=features("language"),
            needs=features("prose", "beyond ascii", *(f"letter:{sign}" for sign in "bfgjkqvwxz")),
            bars=barred,
            least={"words": 12},
        )

    def shown(self) -> Mapping[str, object]:
        return {"name": LANGUAGES[self.language]}


class InScript(Constraint):
    """Every letter is of a certain script."""

    wordings = (
        "Use only letters of the {script} script.",
        "Write in {script} script throughout; no other letters.",
    )
    script: str
    """As Unicode names it."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(script=rng.choice(SCRIPTS))

    def met(self, answer: AnswerText) -> bool:
        letters = {sign: n for sign, n in answer.letters_as_written.items() if sign.isalpha()}
        wanted = self.script.upper()
        return sum(letters.values()) >= MIN_LETTERS and all(
            alias(sign) in (wanted, "COMMON", "INHERITED") for sign in letters
        )

    def demand(self) -> Demand:
        return Demand(
            takes=features("language"),
            needs=features("prose", "beyond ascii", "another script"),
            bars=features("english", "latin"),
        )


KINDS: tuple[type[Constraint], ...] = (
    AllLowercase,
    AllUppercase,
    CapitalisedWords,
    CapitalWords,
    LetterForbidden,
    LetterAtLeast,
    AsciiOnly,
    WrittenIn,
    InScript,
)
