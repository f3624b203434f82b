"""Of a conversation is learnt what the policy drew of it, and one reward is of one sample."""

import math
from typing import Any

import pytest
import torch

from records.errors import ItemError
from synth.gym.core.environment import RewardError
from trainer.inference.episode_tokens import EpisodeTokens
from trainer.rl.objective.rows import LearntSample, LearntSequence, sample_of, sequence_of


def tokens_of(drawn: str, first: int = 10, **other: Any) -> EpisodeTokens:
    """`d` is a token that was drawn, anything else one that was read."""
    marks = [letter == "d" for letter in drawn]
    return EpisodeTokens(
        ids=list(range(first, first + len(drawn))),
        logprobs=[-0.5 - n if d else None for n, d in enumerate(marks)],
        model_logprobs=[-1.0 - n if d else None for n, d in enumerate(marks)],
        versions=[7 + n if d else None for n, d in enumerate(marks)],
        **other,
    )


def test_only_drawn_tokens_are_learnt_and_what_comes_behind_them_is_cut() -> None:
    made = sequence_of(tokens_of("pp dd tt d e h"))
    assert made.drawn_T.tolist() == [c == "d" for c in "pp dd tt d"]
    assert made.ids_T.tolist() == list(range(10, 20))
    assert made.num_drawn == 3
    for column, first in ((made.old_T, -1.0), (made.sampled_T, -0.5)):
        assert column[made.drawn_T].tolist() == [first - 3, first - 4, first - 9]
        assert column[~made.drawn_T].isnan().all()
    assert made.versions_T[made.drawn_T].tolist() == [10, 11, 16]
    assert made.routes_TLK is None


def test_routes_of_tokens_that_were_never_fed_are_not_known() -> None:
    routes = torch.arange(24, dtype=torch.int16).view(4, 2, 3)
    made = sequence_of(tokens_of("ppddd", routes=routes)).routes_TLK
    assert made is not None
    assert torch.equal(made[:4], routes)
    assert (made[4] == -1).all()
    cut = sequence_of(tokens_of("pdt", routes=routes)).routes_TLK
    assert cut is not None
    assert torch.equal(cut, routes[:2])
    assert sequence_of(tokens_of("pd", routes=torch.zeros(2, 0, 3))).routes_TLK is None


def test_a_conversation_is_one_sample_however_many_sequences_it_has() -> None:
    earlier = [tokens_of("ppd"), tokens_of("ppp"), tokens_of("pdd", first=30)]
    conversation = tokens_of("pppdd", first=50, earlier=earlier)
    silent = tokens_of("pp")
    made = sample_of([conversation, silent], group="g", number=2, family="maths", reward=0.5)
    assert [q.ids_T.tolist()[0] for q in made.sequences] == [10, 30, 50]
    assert made.num_drawn == 5
    assert sample_of([silent], group="g", number=0, family="maths", reward=0.0).sequences == ()


@pytest.mark.parametrize("reward", [math.nan, math.inf, -math.inf])
def test_a_reward_that_is_no_number_is_refused(reward: float) -> None:
    with pytest.raises(RewardError, match="reward_no_number"):
        sample_of([tokens_of("pd")], group="g", number=0, family="maths", reward=reward)
    with pytest.raises(RewardError, match="reward_no_number"):
        LearntSample("g", 0, "maths", reward, ())


@pytest.mark.parametrize("column", ["logprobs", "model_logprobs"])
def test_a_drawn_token_has_logprobs_that_are_numbers(column: str) -> None:
    tokens = tokens_of("pdd")
    getattr(tokens, column)[2] = -math.inf
    with pytest.raises(ItemError, match="logprob_no_number: a drawn token has -inf") as error:
        sequence_of(tokens)
    assert error.value.reason == "logprob_no_number"


def test_sequences_that_are_none_are_refused() -> None:
    with pytest.raises(ValueError, match="nothing was drawn among 2 tokens"):
        sequence_of(tokens_of("pp"))
    with pytest.raises(ValueError, match="the first token of a sequence is read"):
        sequence_of(tokens_of("dpd"))
    whole = sequence_of(tokens_of("ppd"))
    with pytest.raises(ValueError, match=r"lengths \[2, 3\]"):
        LearntSequence(
            whole.ids_T[:2], whole.drawn_T, whole.old_T, whole.sampled_T, whole.versions_T
        )
