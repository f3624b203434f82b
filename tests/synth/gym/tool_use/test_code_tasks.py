"""Tasks on code come through the same catalogue: mending it is rewarded, its tests decide."""

from pathlib import Path

import pytest

from records.store.dataset import Dataset
from sandboxes.lending.leases import available
from synth.gym.tool_use.tool_use import ToolUse
from tests.synth.clinic import calls, says
from tests.synth.gym.tool_use.playing import SILENT, actions_of, played, recorded, settings_of
from tests.trainer.played_dataset import make_dataset

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(available() is not None, reason=f"no sandbox: {available()}"),
]

DONE = says("The program is right now.")
FORGES = calls(
    ("run_shell", {"command": "echo > tests/test_examples.py; echo 'print(1)' > PROBLEM.md"}),
)


def test_hidden_tests_decide_and_no_act_forges_them(tmp_path: Path) -> None:
    made = make_dataset(tmp_path / "data", num_tasks=3, domains=(), code=("basics",))
    rows = recorded(made)
    env = ToolUse(settings_of(made))
    assert {tag for task in env.tasks() for tag in task.tags} >= {"domain:code_workspace"}
    mended = played(env, {task: actions_of(row) for task, row in rows.items()})
    assert len(mended) == len(Dataset.open(made).rows("tasks"))
    for task, (messages, step) in mended.items():
        assert step.reward is not None
        assert step.reward.value == step.reward.parts["objective_reward"]
        assert step.reward.value == pytest.approx(rows[task]["objective_reward"])
        assert messages[:2] == rows[task]["messages"][:2]
    assert {step.reward.value for _, step in mended.values() if step.reward} >= {1.0}
    for actions in ([SILENT], [DONE] * 3, [FORGES, DONE, DONE]):
        for _, step in played(env, dict.fromkeys(rows, actions)).values():
            assert step.reward is not None
            assert step.reward.value == 0
