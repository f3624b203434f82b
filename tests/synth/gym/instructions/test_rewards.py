"""Rewards: all or nothing, named parts; answers that claim to comply, or do so by the letter."""

import random
import time

import pytest

from benchmarks.instruction_checks import LabelledAnswer, labelled_answers
from synth.gym.core.environment import checked
from synth.gym.instructions.answer import AnswerText
from synth.gym.instructions.claims import claims_in, emptiness
from synth.gym.instructions.constraint import Constraint
from synth.gym.instructions.environment import question_of, reward_of
from synth.gym.instructions.kinds import drawn_together
from synth.gym.instructions.lengths import SentencesExactly, WordsAtLeast, WordsAtMost
from synth.gym.instructions.letters import AllLowercase
from synth.gym.instructions.punctuation import MarkForbidden
from synth.gym.instructions.shape import CopiedPassage
from synth.gym.instructions.words import LastWords, WordsRequired

REQUEST = "Write a short note about a leaking roof for neighbours."
HONEST = "The roof above the stairs leaks again. A bucket stands on the third floor."

TUNING = [one for one in labelled_answers() if one.half == "tuning"]


def reward(answer: str, *constraints: Constraint) -> tuple[float, dict[str, float]]:
    question = question_of(REQUEST, constraints, [0] * len(constraints))
    found = checked(reward_of(constraints, answer, question=question))
    return found.value, dict(found.parts)


def named(one: LabelledAnswer) -> str:
    return f"{one.label}: {one.answer[:30]!r}"


@pytest.mark.parametrize("one", TUNING, ids=named)
def test_answers_written_by_hand_are_judged_as_labelled(one: LabelledAnswer) -> None:
    assert one.is_judged_rightly, one.reward


def test_one_constraint_that_is_not_met_costs_everything_and_is_named() -> None:
    value, parts = reward(HONEST, WordsAtMost(most=30), SentencesExactly(number=3), AllLowercase())
    assert value == 0
    assert parts == {
        **{"words_at_most": 1, "sentences_exactly": 0, "all_lowercase": 0},
        **{"share": 1 / 3, "claims": 0, "empty": 0},
    }
    assert reward(HONEST, WordsAtMost(most=30), SentencesExactly(number=2))[0] == 1


def test_the_empty_answer_gets_nothing_whatever_is_asked() -> None:
    for text in ("", " \n", "...", "\U0001f389"):
        value, parts = reward(text, WordsAtMost(most=30), MarkForbidden(mark="!"))
        assert (value, parts["empty"], parts["share"]) == (0, 1, 1)


def test_a_true_claim_costs_nothing() -> None:
    for claim in ("As requested, this note has exactly two sentences. ", "(2 sentences) "):
        text = claim + HONEST
        assert claims_in(AnswerText(text))
        constraint = SentencesExactly(number=len(AnswerText(text).sentences))
        value, parts = reward(text, constraint)
        assert (value, parts["claims"]) == (1, 0)


def test_a_false_claim_is_named() -> None:
    value, parts = reward(
        "As requested, without commas: " + HONEST + " So, beware.", MarkForbidden(mark=",")
    )
    assert (value, parts["claims"]) == (0, 1)


def test_words_that_stand_in_a_copy_of_the_question_alone_do_not_count() -> None:
    constraint = WordsRequired(required=("river", "lantern"))
    copied = 'The words "river" and "lantern" must all appear. ' + HONEST
    assert constraint.met(AnswerText(copied))
    claimed = "This note includes the words river and lantern. " + HONEST
    used = HONEST + " By the river hangs a lantern."
    hidden = HONEST + " <!-- river, lantern -->"
    texts = (copied, claimed, hidden, used, copied + used)
    assert [reward(text, constraint)[0] for text in texts] == [0, 0, 0, 1, 1]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("one two three four five six seven eight nine ten eleven twelve", "filler"),
        ("Here is idea 1. Here is idea 2. Here is idea 3. Here is idea four.", "repeated"),
        ("Rain rain rain rain rain rain falls on my roof.", "repeated"),
        ("The next sentence is a sentence. The last word is the last word.", "about_form"),
        ("Xtrv bnm qwrt plk zzt", "no_words"),
        ("", "copied"),
        ("So it.", "nothing"),
    ],
)
def test_why_an_answer_is_empty_has_a_name(text: str, why: str) -> None:
    constraints = [WordsAtMost(most=60)]
    question = question_of(REQUEST, constraints, [0])
    assert emptiness(AnswerText(text or question), constraints, question=question) == why


def test_what_a_constraint_hands_out_is_no_copy() -> None:
    passage = "Bread is sold at the back door, soup at the front."
    value, _ = reward(f"{HONEST} A sign says: {passage}", CopiedPassage(passage=passage))
    assert value == 1
    phrase = "and that is all there is to it"
    value, _ = reward(f"{HONEST[:-1]}, {phrase}.", LastWords(phrase=phrase))
    assert value == 1


@pytest.mark.parametrize(
    "text",
    [
        "Row, row, row your boat, gently down the stream.",
        "The rain came, and the rain stayed, and the rain left the hall wet to the knees.",
        "First, find the leak. Second, put a bucket below it. Third, call the landlord.",
        "As requested at our last meeting, the roof will be mended on Friday.",
        "Hmmmm, the roof. Brrrrr, the stairs. Nobody likes either of them in January.",
        "Please follow the instructions on the bucket and keep to the rules of the house.",
        "Das Dach leckt schon wieder. Ein Eimer steht im dritten Stock, genau unter der Lampe.",
        "\u5c4b\u9876\u53c8\u6f0f\u6c34\u4e86\u3002\u8bf7\u5927\u5bb6\u5c0f\u5fc3\u697c\u68af\u3002",
    ],
)
def test_manner_is_not_punished(text: str) -> None:
    constraint = WordsAtMost(most=60)
    question = question_of(REQUEST, [constraint], [0])
    assert emptiness(AnswerText(text), [constraint], question=question) is None


def test_any_text_has_a_reward() -> None:
    rng = random.Random(0)
    signs = 'aZ 9.,!?\n"*#|-[]{}:\u4e00\u3002\u00e9\u0301\U0001f389\ud800\x00'
    for number in range(150):
        constraints = drawn_together(rng, number % 5 + 1)
        text = "".join(rng.choice(signs) for _ in range(rng.randint(0, 80)))
        value, parts = reward(text, *constraints)
        assert 0 <= value <= 1
        assert len(parts) == len(constraints) + 3


@pytest.mark.slow
@pytest.mark.parametrize(
    "part",
    ["river ", "this answer has exactly ", "z", "a. ", "use the words ", "\u5171\u4e09\u53e5 "],
)
def test_the_check_of_a_long_answer_takes_linear_time(part: str) -> None:
    size = 1_000_000 if part == "z" else 100_000
    begin = time.process_time()
    reward(
        part * (size // len(part)),
        WordsAtLeast(least=10),
        WordsRequired(required=("river", "stone")),
    )
    assert time.process_time() - begin < 15
