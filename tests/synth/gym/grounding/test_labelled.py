"""Answers that were labelled by hand before there was a verifier: right, wrong and cheating."""

import pytest

from benchmarks.gym_grounding import LabelledText, labelled_texts
from synth.gym.core.environment import checked
from synth.gym.grounding.environment import certain_reward

TUNING = labelled_texts("tuning")


def named(one: LabelledText) -> str:
    return f"{one.kind}: {one.text[:40]!r}"


@pytest.mark.parametrize("one", TUNING, ids=named)
def test_code_says_what_the_label_says_or_leaves_the_sentence_open(one: LabelledText) -> None:
    read = one.read
    if not read.is_refused:
        found = zip(read.sentences, one.says, strict=True)
        assert all(read.findings[name] in (label, "open") for name, label in found)


@pytest.mark.parametrize("one", TUNING, ids=named)
def test_a_reward_that_takes_no_judge_is_what_the_answer_is_worth(one: LabelledText) -> None:
    reward = certain_reward(one.task, one.read)
    assert reward is None or one.is_worth(checked(reward))


@pytest.mark.parametrize("one", TUNING, ids=named)
def test_with_a_judge_who_is_right_every_answer_gets_its_worth(one: LabelledText) -> None:
    assert one.is_worth(checked(one.judged()))


def test_code_alone_decides_some_of_each_kind() -> None:
    decided = {one.kind for one in TUNING if certain_reward(one.task, one.read) is not None}
    assert decided == {"right", "wrong", "cheating"}
