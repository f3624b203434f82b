"""Constraints over constraints: where a condition holds, of one of two, in a certain paragraph."""

import random
from collections.abc import Mapping
from typing import Any, Self

from pydantic import SerializeAsAny, field_validator

from synth.gym.instructions import lengths, letters, punctuation, values, words
from synth.gym.instructions.answer import AnswerText
from synth.gym.instructions.constraint import (
    Constraint,
    Demand,
    features,
    kind_of,
    together,
)
from synth.gym.instructions.lengths import FLOWING
from synth.gym.instructions.words import vocabulary

INNER: Mapping[str, type[Constraint]] = {
    kind_of(kind): kind
    for module in (lengths, words, letters, punctuation, values)
    for kind in module.KINDS
}
"""What may stand within another: none that is nested itself, or has a form of its own."""

_CONSEQUENCES = ("mark_forbidden", "sentences_exactly", "words_at_most", "no_digits", "last_words")
_OF_A_PARAGRAPH = ("words_required", "sentences_exactly", "no_digits", "word_at_least")
_ALTERNATIVES = (
    "words_required",
    "ends_with_mark",
    "emoji_exactly",
    "capital_words",
    "placeholders",
)


def inner(value: Any) -> Constraint:
    """A constraint of `INNER` from its JSON form. ValueError for what is none."""
    if isinstance(value, Constraint):
        return value
    if not isinstance(value, Mapping) or value.get("kind") not in INNER:
        raise ValueError(f"not a constraint that stands within others: {value!r}")
    return INNER[value["kind"]].model_validate(value.get("params", {}))


def as_json(constraint: Constraint) -> dict[str, Any]:
    """A constraint as tasks hold it."""
    return {
        "kind": kind_of(type(constraint)),
        "params": {
            name: as_json(value) if isinstance(value, Constraint) else _plain(value)
            for name in type(constraint).model_fields
            for value in (getattr(constraint, name),)
        },
    }


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _drawn(rng: random.Random, names: tuple[str, ...]) -> Constraint:
    return INNER[rng.choice(names)].draw(rng)


def _clause(constraint: Constraint, variant: int = 0) -> str:
    """The sentence of a constraint as the rest of one: "use no digits"."""
    sentence = constraint.words(variant).rstrip(".")
    return sentence[0].lower() + sentence[1:]


class _Nested(Constraint):
    """One whose parameters are constraints of `INNER`, read from their JSON form."""

    @field_validator("then", "one", "other", "rule", mode="before", check_fields=False)
    @classmethod
    def _read_inner(cls, value: Any) -> Constraint:
        return inner(value)


class IfWordThen(_Nested):
    """Where a word stands in the answer, a further constraint holds."""

    wordings = (
        'If you use the word "{word}" anywhere: {then}.',
        'The word "{word}" is allowed on one condition: {then}.',
    )
    word: str
    then: SerializeAsAny[Constraint]
    """The further constraint."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(word=rng.choice(vocabulary("nouns")), then=_drawn(rng, _CONSEQUENCES))

    def met(self, answer: AnswerText) -> bool:
        return not answer.times(self.word) or self.then.met(answer)

    def demand(self) -> Demand:
        return together(self.then.demand(), Demand(takes=features("condition")))

    def shown(self) -> Mapping[str, object]:
        return {"word": self.word, "then": _clause(self.then)}


class IfLongThen(_Nested):
    """Where the answer has more than so many words, a further constraint holds."""

    wordings = (
        "If the answer has more than {words_before} words: {then}.",
        "Beyond {words_before} words a further rule holds: {then}.",
    )
    words_before: int
    """Words up to which it does not hold."""
    then: SerializeAsAny[Constraint]
    """The further constraint."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        names = ("mark_forbidden", "no_digits", "last_words", "sentence_length")
        return cls(words_before=rng.randrange(30, 81, 10), then=_drawn(rng, names))

    def met(self, answer: AnswerText) -> bool:
        return len(answer.words) <= self.words_before or self.then.met(answer)

    def demand(self) -> Demand:
        return together(
            self.then.demand(), Demand(takes=features("condition"), needs=features("spaced"))
        )

    def shown(self) -> Mapping[str, object]:
        return {"words_before": self.words_before, "then": _clause(self.then)}


class IfQuestionThen(_Nested):
    """Where the answer asks something, a further constraint holds."""

    wordings = (
        "If the answer asks a question: {then}.",
        "Questions are allowed on one condition: {then}.",
    )
    then: SerializeAsAny[Constraint]
    """The further constraint."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(then=_drawn(rng, ("no_digits", "words_required", "words_at_most")))

    def met(self, answer: AnswerText) -> bool:
        return not punctuation.marks_in(answer, "?") or self.then.met(answer)

    def demand(self) -> Demand:
        return together(self.then.demand(), Demand(takes=features("condition")))

    def shown(self) -> Mapping[str, object]:
        return {"then": _clause(self.then)}


class EitherOr(_Nested):
    """At least one of two constraints holds."""

    wordings = (
        "Meet at least one of these two: {one}; or {other}.",
        "Do one of the following, or both: {one}; {other}.",
    )
    held_by_rest = True
    one: SerializeAsAny[Constraint]
    other: SerializeAsAny[Constraint]

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        names = rng.sample(_ALTERNATIVES, 2)
        return cls(one=INNER[names[0]].draw(rng), other=INNER[names[1]].draw(rng))

    def met(self, answer: AnswerText) -> bool:
        return self.one.met(answer) or self.other.met(answer)

    def demand(self) -> Demand:
        return together(self.one.demand(), Demand(takes=features("alternative")))

    def shown(self) -> Mapping[str, object]:
        return {"one": _clause(self.one), "other": _clause(self.other)}


class NthParagraph(_Nested):
    """A certain paragraph meets a further constraint."""

    wordings = (
        "With paragraphs parted by blank lines, number {paragraph} has a rule of its own: {rule}.",
        "For paragraph {paragraph} alone, where blank lines part paragraphs: {rule}.",
    )
    held_by_rest = True
    paragraph: int
    """From 1."""
    rule: SerializeAsAny[Constraint]
    """The further constraint."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        return cls(paragraph=rng.randint(2, 3), rule=_drawn(rng, _OF_A_PARAGRAPH))

    def met(self, answer: AnswerText) -> bool:
        if len(answer.paragraphs) < self.paragraph:
            return False
        return self.rule.met(AnswerText(answer.paragraphs[self.paragraph - 1]))

    def demand(self) -> Demand:
        return _within_paragraphs(self.rule, self.paragraph)

    def shown(self) -> Mapping[str, object]:
        return {"paragraph": self.paragraph, "rule": _clause(self.rule)}


class EveryParagraph(_Nested):
    """There are at least so many paragraphs, and every one meets a further constraint."""

    wordings = (
        "Write {least} or more paragraphs, parted by blank lines; in every one of them: {rule}.",
        "Of at least {least} paragraphs, parted by blank lines, each follows a rule: {rule}.",
    )
    held_by_rest = True
    least: int
    """Paragraphs."""
    rule: SerializeAsAny[Constraint]
    """The further constraint."""

    @classmethod
    def draw(cls, rng: random.Random) -> Self:
        kind = rng.choice(("mark_exactly", "words_at_most", "first_word"))
        return cls(least=rng.randint(2, 3), rule=INNER[kind].draw(rng))

    def met(self, answer: AnswerText) -> bool:
        return len(answer.paragraphs) >= self.least and all(
            self.rule.met(AnswerText(paragraph)) for paragraph in answer.paragraphs
        )

    def demand(self) -> Demand:
        demand = _within_paragraphs(self.rule, 4)  # of as many as may be asked for beside it
        return demand._replace(
            takes=demand.takes | {"openings"}, needs=demand.needs | {"repetition"}
        )

    def shown(self) -> Mapping[str, object]:
        return {"least": self.least, "rule": _clause(self.rule)}


def _within_paragraphs(rule: Constraint, paragraphs: int) -> Demand:
    """Of a rule for paragraphs: what it bounds it bounds in each, so of the whole it bounds
    nothing; what it decides, others may not decide for the whole."""
    own = rule.demand()
    words_of_one = max(own.least.get("words", 0), own.uses.get("words", 0), 4)
    sentences = max(own.least.get("sentences", 0), 1)
    return Demand(
        takes=own.takes
        | {"paragraph rule", "sentences", "start", "paragraph start", "least words", "most words"},
        needs=own.needs | FLOWING | {"break"},
        bars=own.bars,
        least={
            "paragraphs": paragraphs,
            "lines": paragraphs,
            "sentences": paragraphs * sentences,
            "words": paragraphs * words_of_one,
            "characters": paragraphs * words_of_one * 8,
        },
    )


KINDS: tuple[type[Constraint], ...] = (
    IfWordThen,
    IfLongThen,
    IfQuestionThen,
    EitherOr,
    NthParagraph,
    EveryParagraph,
)
