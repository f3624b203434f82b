"""Steps a second of the environment of tool-use tasks, without a model: recorded actions again.

    python benchmarks/bench_gym.py [--dataset FOLDER] [--tasks 64] [--at-once 1 16] [--repeats 3]

Plays what the trajectories of a dataset say, on the tasks that the environment has, so many
episodes at once; without a dataset on one that the offline model makes first. Each repeat is played
twice: with the simulated user `asked`, who is the offline model unless the dataset's run had
another, and with its answers `journalled`, as where an interrupted episode is brought back: that is
the environment without the user's model. Prints a JSON line for each: steps a CPU second of the one
process, which is what one idle core would take, the beginnings and ends of episodes included;
beside it those of a second of wall clock, the milliseconds of it that a step with calls and one
with words took, and the share of steps with words.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.measured import show, spread
from flows.runtime.open_run import open_run
from records.store.dataset import Dataset
from synth.episode.sessions import is_episode
from synth.gym.core.environment import GymTask
from synth.gym.tool_use.settings import ToolUseSettings
from synth.gym.tool_use.tool_use import ToolUse
from synth.llm.wire.request import Message
from synth.pipeline.config import BUILT_IN, RunConfig
from synth.pipeline.stages import STAGES

Played = list[tuple[GymTask, list[Message]]]
"""Tasks, each with the actions that are played."""


class Took(NamedTuple):
    cpu_s: float
    wall_s: float
    steps: dict[str, list[float]]
    """Seconds of each step, by what the action holds."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", type=Path, help="folder of a dataset; default: one is made")
    parser.add_argument("--tasks", type=int, default=64)
    parser.add_argument("--at-once", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        dataset = options.dataset or made(Path(folder) / "dataset", options.tasks)
        for measurement in measurements(dataset, Path(folder), options):
            show(measurement)


def made(folder: Path, num_tasks: int) -> Path:
    config = RunConfig(domains=(BUILT_IN,), servers=(), code=(), num_tasks=num_tasks, workers=1)

    async def work() -> None:
        async with open_run(config, str(folder), command="bench_gym") as run:
            for kind in STAGES:
                await run.run_stage(kind(run))

    asyncio.run(work())
    return folder


def measurements(
    dataset: Path, folder: Path, options: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    settings = ToolUseSettings(dataset=str(dataset))
    actions = {
        row["task_id"]: [m for m in row["messages"] if m["role"] == "assistant"]
        for row in Dataset.open(dataset).rows("trajectories")
        if is_episode(row)
    }
    env = ToolUse(settings)
    tasks = [(t, actions[t.task_id]) for t in env.tasks() if t.task_id in actions]
    for at_once in options.at_once:
        found: dict[str, list[Took]] = {"asked": [], "journalled": []}
        for repeat in range(options.repeats + 1):  # the first warms up
            journal = folder / f"{at_once}-{repeat}.sqlite"
            for took in found.values():
                took.append(timed(settings, journal, tasks[: options.tasks], at_once))
        for user, took in found.items():
            yield figures(took[1:], user, at_once, min(len(tasks), options.tasks))


def figures(took: Sequence[Took], user: str, at_once: int, tasks: int) -> dict[str, Any]:
    def count(one: Took) -> int:
        return sum(map(len, one.steps.values()))

    kinds = {
        f"{kind}_ms": round(1000 * median(s for one in took for s in one.steps[kind]), 2)
        for kind in ("calls", "words")
    }
    return {
        "name": "gym_tool_use",
        "parameters": {"user": user, "at_once": at_once, "tasks": tasks},
        **spread([count(one) / one.cpu_s for one in took], 1),
        "unit": "steps/CPU s",
        "of_wall": spread([count(one) / one.wall_s for one in took], 1),
        "steps": count(took[0]),
        **kinds,
        "words_share": round(len(took[0].steps["words"]) / count(took[0]), 3),
    }


def timed(settings: ToolUseSettings, journal: Path, tasks: Played, at_once: int) -> Took:
    """The catalogue is read before the clock starts, the environment opened after."""
    env, gate = ToolUse(settings, journal=journal), asyncio.Semaphore(at_once)
    steps: defaultdict[str, list[float]] = defaultdict(list)

    async def one(task: GymTask, actions: list[Message]) -> None:
        async with gate:
            episode = await env.begin(task, 0)
            for action in actions:
                began = time.perf_counter()
                step = await episode.step(action)
                kind = "calls" if action.get("tool_calls") else "words"
                steps[kind].append(time.perf_counter() - began)
                if step.done:
                    break
            await episode.close()

    async def all_of_them() -> tuple[float, float]:
        cpu, wall = time.process_time(), time.perf_counter()
        await asyncio.gather(*(one(task, actions) for task, actions in tasks))
        took = time.process_time() - cpu, time.perf_counter() - wall
        await env.close()
        return took

    return Took(*asyncio.run(all_of_them()), dict(steps))


if __name__ == "__main__":
    main()
