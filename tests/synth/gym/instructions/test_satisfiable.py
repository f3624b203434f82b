"""What is drawn together can be met together: a writer meets it by construction."""

import random
from collections import Counter

import pytest

from records.errors import ConfigError
from synth.gym.instructions.answer import AnswerText
from synth.gym.instructions.constraint import Constraint, kind_of
from synth.gym.instructions.data_forms import JsonList
from synth.gym.instructions.kinds import KINDS, drawn_together, go_together
from synth.gym.instructions.lengths import SentencesExactly, WordsAtLeast, WordsAtMost
from synth.gym.instructions.letters import (
    AllLowercase,
    AllUppercase,
    CapitalWords,
    LetterForbidden,
    WrittenIn,
)
from synth.gym.instructions.markdown import BulletsExactly, PlainText
from synth.gym.instructions.nested import IfQuestionThen
from synth.gym.instructions.punctuation import EndsWithMark, MarkExactly, MarkForbidden, NoDigits
from synth.gym.instructions.values import NumbersAtLeast
from synth.gym.instructions.words import LastWords, WordsRequired
from tests.synth.gym.instructions.plan import NOT_WRITTEN
from tests.synth.gym.instructions.writer import written

WRITTEN = tuple(name for name in KINDS if name not in NOT_WRITTEN)


def unmet(constraints: list[Constraint], text: str) -> list[str]:
    answer = AnswerText(text)
    return [kind_of(type(one)) for one in constraints if not one.met(answer)]


@pytest.mark.parametrize("kind", WRITTEN)
def test_every_kind_can_be_met(kind: str) -> None:
    rng = random.Random(kind)
    for _ in range(10):
        one = KINDS[kind].draw(rng)
        text = written([one])
        assert one.met(AnswerText(text)), (one, text)


@pytest.mark.slow
def test_two_thousand_combinations_can_be_met() -> None:
    rng = random.Random(0)
    failed: list[tuple[list[str], list[Constraint], str]] = []
    for number in range(2000):
        constraints = drawn_together(rng, number % 5 + 1, names=WRITTEN)
        text = written(constraints)
        if missed := unmet(constraints, text):
            failed.append((missed, constraints, text))
    assert not failed, (len(failed), *failed[0])


CONTRADICTIONS = (
    (AllLowercase(), AllUppercase()),
    (WordsAtLeast(least=60), WordsAtMost(most=50)),
    (WordsAtMost(most=10), SentencesExactly(number=8)),
    (PlainText(), BulletsExactly(number=3)),
    (SentencesExactly(number=2), BulletsExactly(number=3)),
    (LetterForbidden(letter="v"), WordsRequired(required=("river", "stone"))),
    (AllLowercase(), CapitalWords(least=2)),
    (JsonList(number=3), SentencesExactly(number=2)),
    (JsonList(number=3), MarkForbidden(mark=",")),
    (LastWords(phrase="this is where it ends"), EndsWithMark(mark="?")),
    (WrittenIn(language="de"), WordsRequired(required=("river", "stone"))),
    (NoDigits(), NumbersAtLeast(least=3)),
    (MarkExactly(mark="!", number=2), MarkForbidden(mark="!")),
    (IfQuestionThen(then=NoDigits()), NumbersAtLeast(least=3)),
)


@pytest.mark.parametrize("pair", CONTRADICTIONS)
def test_what_contradicts_each_other_does_not_go_together(
    pair: tuple[Constraint, Constraint],
) -> None:
    assert all(go_together([one]) for one in pair)
    assert not go_together(pair)
    assert not go_together(reversed(pair))


def test_every_kind_is_drawn_and_with_others() -> None:
    drawn: Counter[str] = Counter()
    alone: Counter[str] = Counter()
    rng = random.Random(3)
    for _ in range(400):
        kinds = [kind_of(type(one)) for one in drawn_together(rng, 3)]
        assert len(set(kinds)) == 3
        drawn.update(kinds)
        alone[kinds[0]] += 1
    assert drawn.keys() == KINDS.keys()
    assert len(alone) > len(KINDS) / 2


def test_kinds_that_do_not_go_together_are_an_error() -> None:
    with pytest.raises(ConfigError, match="no 2 of these constraints go together"):
        drawn_together(random.Random(0), 2, names=("all_lowercase", "all_uppercase"))
