"""Episodes of tasks that are ranked end without a reward; one that brings its own is a fault."""

import asyncio
from collections.abc import Sequence

import pytest

from synth.gym.core.environment import GymEpisode, GymTask
from synth.gym.core.ranked import RANKED
from synth.gym.open_prompts import OpenEpisodeOfPrompt
from tests.trainer.rl.rollouts.toys import Twice, model_folder, policy_of
from trainer.inference.drawing import Sampling
from trainer.rl.learning import rewarded_samples
from trainer.rl.objective.settings import BudgetSettings
from trainer.rl.rollouts.rollouts import Rollouts
from trainer.rl.rollouts.samples import RolloutSample, sample_of_json, sample_to_json
from trainer.rl.rollouts.settings import RolloutSettings


class Mood:
    """Open prompts, without a file."""

    family = "mood"

    def tasks(self) -> Sequence[GymTask]:
        return [GymTask("mood-0", self.family, "train", (RANKED,), {"prompt": "where is it?"})]

    async def begin(self, task: GymTask, seed: int) -> GymEpisode:
        return OpenEpisodeOfPrompt(task)

    async def close(self) -> None: ...


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> list[RolloutSample]:
    """Eight of an open prompt, then two of a ranked task that ends with a reward."""
    folder = tmp_path_factory.mktemp("ranked")
    policy = policy_of(model_folder(folder / "model"), Sampling(temperature=1.0, max_tokens=24))
    settings = RolloutSettings(samples=8, deterministic=True, token_budget=12)
    rewarded = GymTask("twice-0", "twice", "train", (RANKED,), {"number": 1})

    async def played() -> list[RolloutSample]:
        rollouts = Rollouts(policy, [Mood(), Twice()], settings, folder / "kept")
        groups = await rollouts.play([*Mood().tasks(), rewarded], 0)
        await rollouts.close()
        assert rewarded_samples(groups, BudgetSettings()).samples == []
        return [sample for group in groups for sample in group.samples]

    return asyncio.run(played())


def test_an_answer_waits_for_its_rank_and_silence_does_not(samples: list[RolloutSample]) -> None:
    own = samples[:8]
    assert {sample.reward for sample in own} == {None}
    assert "completed" in {sample.outcome for sample in own}
    for sample in own:
        answered = sample.outcome in ("completed", "truncated")
        assert sample.awaits_rank == answered
        assert not sample.lost
        again = sample_of_json(sample_to_json(sample))
        assert again.awaits_rank == sample.awaits_rank


def test_a_reward_of_its_own_is_a_fault(samples: list[RolloutSample]) -> None:
    played = [sample for sample in samples[8:] if sample.outcome != "silent"]
    assert played
    assert {sample.outcome for sample in played} == {"environment_error"}
    assert all("ranked, and it ended with a reward" in sample.detail for sample in played)
