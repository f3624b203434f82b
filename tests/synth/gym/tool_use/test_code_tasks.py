"""Tasks on code come through the same catalogue: mending it is rewarded, its tests decide."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from sandboxes.lending.leases import available
from synth.gym.core.environment import GymStep, GymTask
from synth.gym.tool_use.tool_use import ToolUse
from synth.llm.wire.request import Message
from synth.tasks.config import TaskConfig, TurnLimit
from tests.synth.clinic import calls, says
from tests.synth.gym.tool_use.playing import SILENT, played, settings_of
from tests.trainer.played_dataset import make_dataset

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(available() is not None, reason=f"no sandbox: {available()}"),
]

DONE = says("The program is right now.")
FORGES = calls(
    ("run_shell", {"command": "echo > tests/test_examples.py; echo 'print(1)' > PROBLEM.md"}),
)


SHORT = TaskConfig(max_turns=TurnLimit(on_code=6))


def plan_of(task: GymTask) -> list[Message]:
    """The reference plan as actions, then a word about it."""
    steps = [(call["tool"], call["arguments"]) for call in task.body["reference_plan"]]
    return [*(calls(step, first=number) for number, step in enumerate(steps)), DONE]


def values(done: Mapping[str, tuple[list[Message], GymStep]]) -> list[float | None]:
    return [step.reward and step.reward.value for _, step in done.values()]


def test_hidden_tests_decide_and_no_act_forges_them(tmp_path: Path) -> None:
    made = make_dataset(tmp_path / "data", num_tasks=2, domains=(), code=("basics",), tasks=SHORT)
    env = ToolUse(settings_of(made))
    ids = [task.task_id for task in env.tasks()]
    assert len(ids) == 2
    assert {tag for task in env.tasks() for tag in task.tags} >= {"domain:code_workspace"}
    assert values(played(env, {task.task_id: plan_of(task) for task in env.tasks()})) == [1.0, 1.0]
    for actions in ([SILENT], [DONE], [FORGES, DONE]):
        assert values(played(env, dict.fromkeys(ids, actions))) == [0.0, 0.0]
