"""The proof: every part of its short form at work, and what its page says of given episodes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.proof.overlap import overlap_of
from benchmarks.proof.pace import LEAST_STEPS, steps_within
from benchmarks.proof.report import difference_interval
from records.store.dataset import Dataset
from tests.flows.conftest import ROOT
from tests.trainer.evaluation.test_evaluation import GOOD
from tests.trainer.played_dataset import make_dataset


@pytest.mark.slow
def test_the_short_form_makes_trains_and_scores(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.proof", "--short", "--out", tmp_path]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=1200, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == (tmp_path / "proof.md").read_text().strip()
    for policy in ("pretrained only", "nearest training example", "copies slots", "the teacher"):
        assert policy in done.stdout
    for kind in ("seen tools, new values", "new combination of tools", "new tools", "new domains"):
        assert kind in done.stdout
    taken = json.loads((tmp_path / "seed-0" / "steps.json").read_text())
    assert taken == {"pretrain": 20, "sft": 20}


def test_a_budget_shrinks_steps_and_never_below_a_few() -> None:
    assert steps_within(10, 0.5, 3200).taken == 1200
    assert steps_within(100, 0.5, 3200).taken == 3200
    assert steps_within(-5, 0.5, 3200).taken == LEAST_STEPS
    assert steps_within(-5, 0.5, 20).taken == 20


def test_what_scored_tasks_share_with_training_is_counted(tmp_path: Path) -> None:
    """Of the training tasks themselves: every plan and every call."""
    dataset = Dataset.open(make_dataset(tmp_path / "data", num_tasks=8))
    tasks = [row for row in dataset.rows("tasks") if row["split"] == "train"]
    asked = [GOOD._replace(task_id=task["task_id"], split="train") for task in tasks]
    found = overlap_of(dataset, asked)["train"]
    assert found.tasks == len(tasks)
    assert found.plans == sum(bool(task["reference_plan"]) for task in tasks) > 0
    assert found.calls == found.calls_seen == sum(len(task["reference_plan"]) for task in tasks)


def test_a_difference_between_policies_has_its_interval() -> None:
    same = [(f"d-{n}", 0) for n in range(9)]
    better = [(f"d-{n}", 1) for n in range(9)]
    mixed = [(f"d-{n}", n % 3 - 1) for n in range(9)]
    assert difference_interval(same) == pytest.approx((0.0, 0.0))
    assert difference_interval(better).low > 0
    low, high = difference_interval(mixed)
    assert low < 0 < high
