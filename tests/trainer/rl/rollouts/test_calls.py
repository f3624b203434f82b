"""Calls that compute keep nobody waiting, and find what is in use where they were made."""

import asyncio
from contextvars import ContextVar
from pathlib import Path

from synth.gym.files import EnvironmentFile, load_environment
from tests.trainer.rl.rollouts.toys import model_folder, policy_of
from trainer.inference.drawing import Sampling
from trainer.rl.rollouts.calls import in_own_thread
from trainer.rl.rollouts.rollouts import Rollouts
from trainer.rl.rollouts.settings import RolloutSettings

BLOCKING = """
import time

from synth.gym.core.environment import GymTask, Reward
from synth.gym.core.questions import Questions


class Slow(Questions):
    family = "slow"

    def tasks(self):
        return [GymTask(name, self.family, "train", (), {}) for name in ("blocks", "quick")]

    def question(self, task):
        return "Where?"

    def reward(self, task, answer):
        if task.task_id == "blocks":
            time.sleep(3600)
        return Reward(1.0)


ENVIRONMENT = Slow()
"""
"""A file of a user's, one of whose checks never ends."""


def test_a_check_of_a_user_s_file_that_never_ends_costs_its_episode_alone(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(BLOCKING)
    environment = load_environment(EnvironmentFile.model_validate(str(tmp_path / "slow.py")))
    settings = RolloutSettings(samples=1, step_s=0.5, grace_s=0.2, silent_answers=9)
    policy = policy_of(model_folder(tmp_path / "model"), Sampling(temperature=1.0, max_tokens=200))

    async def played() -> dict[str, str]:
        rollouts = Rollouts(policy, [environment], settings, tmp_path / "kept")
        groups = await rollouts.play(environment.tasks(), 0)
        return {group.task.task_id: group.samples[0].outcome for group in groups}

    assert asyncio.run(played()) == {"blocks": "environment_timeout", "quick": "completed"}


def test_a_call_in_a_thread_of_its_own_finds_the_caller_s_context() -> None:
    place: ContextVar[str] = ContextVar("place", default="here")

    async def asked() -> str:
        return place.get()

    async def caller() -> str:
        place.set("on a cluster")
        return await in_own_thread(asked)()

    assert asyncio.run(caller()) == "on a cluster"
