"""What is drawn together can be met together: a writer meets it by construction."""

import random

import pytest

from synth.gym.instructions.answer import AnswerText
from synth.gym.instructions.constraint import Constraint, kind_of
from synth.gym.instructions.kinds import KINDS, drawn_together
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
