"""What the critic learns: the right word and nothing else, each place right half of the time."""

import torch

from records.chat.k2 import END
from tests.trainer.configs import small
from tests.trainer.rl.critic.scripted import group, small_tokenizer, task
from trainer.data.chat import prompt_for_answer
from trainer.data.chat_format import ChatFormat
from trainer.data.packing import IGNORE
from trainer.inference.episode_tokens import EpisodeTokens
from trainer.model.initialization import new_decoder
from trainer.rl.critic.asking import ComparedPair
from trainer.rl.critic.lessons import CriticLessons, lessons_of
from trainer.rl.critic.pairs import rated_pairs
from trainer.rl.objective.minibatches import minibatch_of
from trainer.rl.objective.ptx import WeightedRows
from trainer.rl.objective.settings import LearningSettings
from trainer.rl.objective.stepper import RLStepper

TOKENIZER = small_tokenizer()


def lessons(count: int = 3, tokens: int = 4000) -> CriticLessons:
    pairs = rated_pairs([group(task(n), 1, 9) for n in range(count)], most=99, seed=0, iteration=0)
    return lessons_of(pairs, TOKENIZER, ChatFormat(system=""), tokens=tokens, weight=0.5)


def rows(given: CriticLessons, number: int = 0, steps: int = 1) -> WeightedRows:
    made = given.of_step(number, steps)
    assert made is not None
    return made


def test_only_the_verdict_is_learnt_and_each_place_is_right_half_of_the_time() -> None:
    made = rows(lessons())
    assert made.weight == 0.5
    words = []
    for ids_T, targets_T in zip(made.rows.ids_BT, made.rows.targets_BT, strict=True):
        places = (targets_T != IGNORE).nonzero().flatten()
        assert places.tolist() == list(range(int(places[0]), int(places[-1]) + 1))
        learnt = targets_T[places].tolist()
        assert learnt.pop() == TOKENIZER.special[END]
        words.append(TOKENIZER.decode(learnt))
        header = prompt_for_answer(TOKENIZER)
        before = ids_T[: int(places[0]) + 1].tolist()
        assert before[-len(header) :] == header
    assert words == ["first", "second"] * 3


def test_a_verdict_is_learnt_behind_the_very_tokens_that_it_is_asked_by() -> None:
    chat = ChatFormat(system="Be brief.")
    pairs = rated_pairs([group(task(1), 1, 9)], most=1, seed=0, iteration=0)
    given = lessons_of(pairs, TOKENIZER, chat, tokens=4000, weight=1.0)
    ((straight, turned),) = given.pairs
    for encoded, is_turned in ((straight, False), (turned, True)):
        question = ComparedPair(*pairs[0]).question(turned=is_turned)
        asked = EpisodeTokens()
        asked.open_answer(TOKENIZER, question, (), chat=chat, seed=0)
        assert encoded.ids[: len(asked.ids)] == asked.ids
        assert not any(encoded.learnt[: len(asked.ids)])
        assert all(encoded.learnt[len(asked.ids) :])


def test_steps_share_the_pairs_and_no_pair_is_torn() -> None:
    given = lessons(5)
    shares = [rows(given, number, 3).rows for number in range(3)]
    assert [len(one.ids_BT) for one in shares] == [4, 4, 2]
    assert given.of_step(7, 9) is None


def test_what_is_too_long_is_left_out_and_counted() -> None:
    given = lessons(3, tokens=20)
    assert (len(given.pairs), given.too_long) == (0, 3)


def test_a_step_moves_the_weights_toward_the_verdicts_alone() -> None:
    model = new_decoder(small(vocab_size=TOKENIZER.size, max_positions=2048), 0)
    stepper = RLStepper.of(model, LearningSettings(lr=3e-3, micro_rows=2))
    nothing = minibatch_of([], stepper.config)
    losses: list[float] = []
    for _ in range(4):
        step = stepper.step(nothing, version=0, verdicts=rows(lessons(1)))
        assert step.taken is not None
        assert step.taken.skipped is None
        assert step.measures is not None
        assert step.measures.verdict_loss is not None
        assert step.measures.ptx_loss is None
        losses.append(step.measures.verdict_loss)
    assert losses[-1] < losses[0] - 0.1
    before = [weight.clone() for weight in model.parameters()]
    assert stepper.step(nothing, version=0).taken is None
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


def test_rows_are_worth_their_weight() -> None:
    gradients: list[torch.Tensor] = []
    for weight in (0.2, 0.4):
        model = new_decoder(small(vocab_size=TOKENIZER.size, max_positions=2048), 0)
        settings = LearningSettings(lr=1e-9, micro_rows=1, clip_norm=1e9)
        stepper = RLStepper.of(model, settings)
        given = rows(lessons(2))._replace(weight=weight)
        stepper.step(minibatch_of([], settings), version=0, verdicts=given)
        gradient = model.lm_head.weight.grad
        assert gradient is not None
        gradients.append(gradient)
    torch.testing.assert_close(2 * gradients[0], gradients[1], rtol=1e-3, atol=1e-7)
