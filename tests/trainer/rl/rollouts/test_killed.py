"""A run that is killed at any moment goes on, and comes out to the bit as one that was not."""

import asyncio
import json
import os
import random
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from synth.gym.core.environment import GymTask
from tests.trainer.rl.rollouts.toys import Errands, Twice, model_folder, policy_of, tasks_of
from trainer.inference.drawing import Sampling
from trainer.rl.rollouts import store
from trainer.rl.rollouts.rollouts import Rollouts
from trainer.rl.rollouts.samples import sample_to_json
from trainer.rl.rollouts.settings import RolloutSettings

SETTINGS = RolloutSettings(
    samples=2, in_flight=5, deterministic=True, segment_tokens=14, chunk_tokens=5, step_s=60.0
)

ITERATIONS: list[list[GymTask]] = [
    [*tasks_of("errands", 2, turns=3), *tasks_of("twice", 2)],
    [*tasks_of("twice", 1), *tasks_of("errands", 1, turns=4)],
    [],
]

RESULT = "result.json"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return [model_folder(tmp_path_factory.mktemp(f"model_{seed}"), seed) for seed in (0, 1)]


class Moments:
    """Counts what happens, and ends the process as a kill does at one of it."""

    def __init__(self, last: int | None) -> None:
        self.count, self._last = 0, last

    def pass_one(self, *_: object) -> None:
        self.count += 1
        if self.count == self._last:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*args: Any, **named: Any) -> Any:
            self.pass_one()
            made = call(*args, **named)
            self.pass_one()
            return made

        return noted


def run(folders: list[Path], kept: Path, moments: Moments) -> None:
    """All iterations from the first on, each under other weights; then the result."""
    policy = policy_of(folders[0], Sampling(temperature=1.0, max_tokens=30), slots=5, routes=True)
    environment = Errands(on_step=moments.pass_one)
    policy.draw = moments.around(policy.draw)  # type: ignore[method-assign]
    written = store.write_atomic
    store.write_atomic = moments.around(written)  # type: ignore[assignment]

    async def iterations() -> list[Any]:
        rollouts = Rollouts(policy, [Twice(), environment], SETTINGS, kept)
        told: list[Any] = []
        for number, tasks in enumerate(ITERATIONS):
            if number:
                policy.load(folders[number % 2], number)
            groups = await rollouts.play(tasks, number)
            assert rollouts.figures is not None
            told.append(rollouts.figures.account)
            told += [sample_to_json(sample) for group in groups for sample in group.samples]
        await rollouts.close()
        return told

    try:
        told = asyncio.run(iterations())
    finally:
        store.write_atomic = written
    (kept / RESULT).write_text(json.dumps(told))


def run_in_a_child(folders: list[Path], kept: Path, last: int | None) -> bool:
    """Whether it came to its end."""
    child = os.fork()
    if child == 0:
        status = 1
        signal.alarm(300)
        try:
            run(folders, kept, Moments(last))
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return False
    assert os.WEXITSTATUS(status) == 0
    return True


@pytest.fixture(scope="module")
def uninterrupted(folders: list[Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    kept, moments = tmp_path_factory.mktemp("whole"), Moments(None)
    run(folders, kept, moments)
    return {"result": (kept / RESULT).read_bytes(), "moments": moments.count}


def test_what_the_run_gives_has_pauses_in_it(uninterrupted: dict[str, Any]) -> None:
    told = json.loads(uninterrupted["result"])
    samples = [one for one in told if isinstance(one, dict)]
    assert sum(one["ended"] > one["begun"] for one in samples) >= 2
    assert uninterrupted["moments"] > 60


@pytest.mark.parametrize("seed", range(2))
def test_killed_at_any_moment_the_run_comes_out_to_the_bit(
    seed: int, folders: list[Path], uninterrupted: dict[str, Any], tmp_path: Path
) -> None:
    rng, kills = random.Random(seed), 0
    while not run_in_a_child(folders, tmp_path, rng.randrange(1, uninterrupted["moments"])):
        kills += 1
        if kills == 6:
            assert run_in_a_child(folders, tmp_path, None)
            break
    assert kills > 0
    assert (tmp_path / RESULT).read_bytes() == uninterrupted["result"]


def test_beside_each_other_a_killed_run_rewards_every_episode_once(
    folders: list[Path], tmp_path: Path
) -> None:
    """Not in the deterministic mode: what was over and written stays as it was."""
    other = {"deterministic": False, "part_samples": 2, "segment_tokens": None}
    settings = SETTINGS.model_copy(update=other)
    tasks = ITERATIONS[0]

    async def once(last: int | None) -> list[Any]:
        moments = Moments(last)
        policy = policy_of(folders[0])
        policy.draw = moments.around(policy.draw)  # type: ignore[method-assign]
        rollouts = Rollouts(policy, [Twice(), Errands()], settings, tmp_path)
        told = [
            sample_to_json(s)
            for i in (0, 1)
            for g in await rollouts.play(tasks * (i == 0), i)
            for s in g.samples
        ]
        await rollouts.close()
        return told

    killed = 0
    for last in (17, 11, 7):
        if (child := os.fork()) == 0:
            try:
                asyncio.run(once(last))
            finally:
                os._exit(0)
        killed += os.WIFSIGNALED(os.waitpid(child, 0)[1])
    assert killed > 0
    parts = {path: path.read_bytes() for path in tmp_path.glob("*/part-*")}
    told = asyncio.run(once(None))
    assert parts
    assert all(path.read_bytes() == content for path, content in parts.items())
    keys = [(one["task"]["task_id"], one["number"]) for one in told]
    assert sorted(keys) == sorted((t.task_id, n) for t in tasks for n in range(2))
