"""A small dataset of the pipeline, and its recorded actions played again; also run as a program:
`python -m tests.synth.gym.tool_use.playing DATASET TASK SEED JOURNAL...` prints, as JSON, what the
recorded actions of a task lead to with each journal."""

import asyncio
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.gym.core.environment import GymEnvironment, GymStep, GymTask
from synth.gym.tool_use.settings import ToolUseSettings
from synth.gym.tool_use.tool_use import ToolUse
from synth.llm.wire.request import Message
from tests.synth.clinic import QUIET

SILENT: Message = {"role": "assistant", "content": ""}


def settings_of(dataset: Path, **settings: object) -> ToolUseSettings:
    given = {"dataset": str(dataset), "episode": QUIET, **settings}
    return ToolUseSettings.model_validate(given)


def recorded(dataset: Path) -> dict[str, Row]:
    """Task -> its trajectory."""
    return {row["task_id"]: row for row in Dataset.open(dataset).rows("trajectories")}


def actions_of(trajectory: Row) -> list[Message]:
    return [message for message in trajectory["messages"] if message["role"] == "assistant"]


async def play(
    env: GymEnvironment, task: GymTask, actions: Iterable[Message], seed: int = 0
) -> tuple[list[Message], GymStep]:
    """All messages of the episode, and its last step; who has nothing more to say is silent."""
    episode = await env.begin(task, seed)
    step = GymStep([], done=False)
    try:
        for action in (*actions, SILENT):
            step = await episode.step(action)
            if step.done:
                break
    finally:
        await episode.close()
    return episode.messages, step


def played(
    env: ToolUse, actions: Mapping[str, Iterable[Message]], seed: int = 0
) -> dict[str, tuple[list[Message], GymStep]]:
    """The named tasks beside each other, and then everything is closed."""
    tasks = [task for task in env.tasks() if task.task_id in actions]

    async def all_of_them() -> list[tuple[list[Message], GymStep]]:
        plays = [play(env, task, actions[task.task_id], seed) for task in tasks]
        try:
            return await asyncio.gather(*plays)
        finally:
            await env.close()

    done = asyncio.run(all_of_them())
    return {task.task_id: one for task, one in zip(tasks, done, strict=True)}


def told(env: ToolUse, task_id: str, actions: Iterable[Message], seed: int) -> dict[str, Any]:
    messages, step = played(env, {task_id: actions}, seed)[task_id]
    return {
        "messages": messages,
        "reward": step.reward and [step.reward.value, dict(step.reward.parts)],
        "requests": env.spent["requests"],
    }


if __name__ == "__main__":
    dataset, name, number, *journals = sys.argv[1:]
    own = actions_of(recorded(Path(dataset))[name])
    environments = [ToolUse(settings_of(Path(dataset)), journal=Path(path)) for path in journals]
    sys.stdout.write(json.dumps([told(env, name, own, int(number)) for env in environments]))
