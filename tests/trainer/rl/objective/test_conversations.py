"""Whole conversations of a policy that plays them are learnt as they were drawn: over turns, pauses
and sequences of one sample."""

from pathlib import Path
from typing import Any

import pytest

from tests.trainer.configs import small
from tests.trainer.inference.test_episode_tokens import OPENING, TOOLS, play, policy_of
from trainer.data.chat_format import ChatFormat
from trainer.data.tokenizer import train_tokenizer
from trainer.inference.episode_tokens import EpisodeTokens
from trainer.inference.policies import ModelPolicy, PolicyRequest
from trainer.model.exchange import export_model, import_model
from trainer.model.initialization import new_decoder
from trainer.rl.objective.measures import LearningMeasures
from trainer.rl.objective.minibatches import minibatch_of
from trainer.rl.objective.rows import sample_of
from trainer.rl.objective.settings import LearningSettings
from trainer.rl.objective.stepper import RLStepper


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tokenizer = train_tokenizer(["where is it? here it is. "] * 9, vocab_size=300)
    shape = small(vocab_size=tokenizer.size, max_positions=2048, init_std=0.05)
    export_model(new_decoder(shape), tmp_path)
    tokenizer.save(tmp_path)
    return tmp_path


def played(policy: ModelPolicy, turns: int, **pause: Any) -> EpisodeTokens:
    tokens = EpisodeTokens()
    play(policy, tokens, turns, **pause)
    return tokens


def measured(folder: Path, episodes: list[EpisodeTokens], *, version: int = 0) -> LearningMeasures:
    """By a step that moves next to nothing."""
    samples = [
        sample_of([tokens], group="g", number=number, family="f", reward=number)
        for number, tokens in enumerate(episodes)
    ]
    stepper = RLStepper.of(import_model(folder), LearningSettings(lr=1e-9, micro_rows=1))
    step = stepper.step(minibatch_of(samples, stepper.config), version=version)
    assert step.taken is not None
    assert step.taken.skipped is None
    assert step.measures is not None
    assert step.taken.targets == step.measures.tokens == sum(s.num_drawn for s in samples)
    return step.measures


def test_turns_and_pauses_are_learnt_as_they_were_drawn(folder: Path) -> None:
    policy = policy_of(folder, routes=True)
    episodes = [played(policy, 3), played(policy, 1), played(policy, 2, budget=4)]
    measures = measured(folder, episodes)
    drawn = sum(sum(tokens.drawn) for tokens in episodes)
    assert (measures.tokens, measures.stale) == (drawn, 0.0)
    assert measures.log_ratio_max < 1e-4
    assert measures.route_agreement == 1.0


def test_the_turns_of_a_model_that_thinks_are_one_sample(folder: Path) -> None:
    policy = policy_of(folder, routes=True, chat=ChatFormat(thinking=True))
    episodes = [played(policy, 3), played(policy, 2)]
    assert [len(tokens.earlier) for tokens in episodes] == [2, 1]
    sample = sample_of(episodes[:1], group="g", number=0, family="f", reward=1.0)
    assert len(sample.sequences) == 3
    measures = measured(folder, episodes)
    assert measures.tokens == sum(
        sum(tokens.drawn) for whole in episodes for tokens in (*whole.earlier, whole)
    )
    assert measures.log_ratio_max < 1e-4


def test_tokens_are_as_old_as_the_weights_that_drew_them(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    export_model(new_decoder(import_model(folder).config, seed=1), other)
    policy = policy_of(folder, routes=True)
    old = played(policy, 1)
    policy.load(other, version=2)
    fresh = played(policy, 1)
    measures = measured(other, [old, fresh], version=2)
    share = sum(old.drawn) / measures.tokens
    assert measures.stale == pytest.approx(share)
    assert (measures.staleness_max, measures.staleness_mean) == (2, pytest.approx(2 * share))
    assert (measures.stale_log_ratio_abs or 0.0) > 0.01
    assert measures.log_ratio_abs == pytest.approx(
        share * (measures.stale_log_ratio_abs or 0.0), abs=1e-4
    )


def test_what_goes_on_under_other_weights_is_learnt_as_these_drew_it(
    folder: Path, tmp_path: Path
) -> None:
    """They read all of it again, by experts of their own choice: replayed, these give the very
    log-probabilities of what they drew, and their own of what was drawn before."""
    other = tmp_path / "other"
    export_model(new_decoder(import_model(folder).config, seed=1), other)
    policy = policy_of(folder, routes=True)
    episodes = [EpisodeTokens() for _ in range(2)]
    asked = [PolicyRequest(OPENING, TOOLS, n, tokens) for n, tokens in enumerate(episodes)]
    assert policy.draw(asked, budget=4) == [None, None]
    policy.load(other, version=1)
    assert None not in policy.draw(asked)
    measures = measured(other, episodes, version=1)
    assert 0 < measures.stale < 1
    assert (measures.stale_log_ratio_abs or 0.0) > 0.01
    assert measures.log_ratio_abs == pytest.approx(
        measures.stale * (measures.stale_log_ratio_abs or 0.0), abs=1e-4
    )
    assert measures.route_agreement == 1.0
