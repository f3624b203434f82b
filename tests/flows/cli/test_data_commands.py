"""`synth sql`, `replay`, `export` and `diff --bytes` as a user calls them, and how they end."""

import json
import shutil
from pathlib import Path

import pytest

from records.store.dataset import Dataset
from tests.flows.conftest import Synth
from tests.flows.pipeline_work import SMALL
from tests.synth.publish.judged import curate, decision
from tests.synth.small_dataset import trajectory, write_dataset


@pytest.fixture
def copy(small_run: Path, tmp_path: Path) -> Path:
    shutil.copytree(small_run, tmp_path / "copy")
    return tmp_path / "copy"


def with_other_calls(copy: Path, **changes: object) -> str:
    """Supersede the first trajectory's row and calls; `changes` are of its first call."""
    dataset = Dataset.open(copy)
    row = next(t for t in dataset.rows("trajectories") if t["num_tool_calls"])
    i = row["trajectory_id"]
    calls = [c for c in dataset.rows("tool_calls") if c["trajectory_id"] == i]
    calls[0] |= changes
    dataset.commit(
        run_id=SMALL.run_id,
        stage="rollouts",
        shard=99,
        tables={"trajectories": [row], "tool_calls": calls},
        supersedes=True,
    )
    return i


def test_replay_says_that_nothing_differs(refusal: Synth, copy: Path) -> None:
    i = Dataset.open(copy).rows("trajectories")[0]["trajectory_id"]
    done = refusal("replay", i[:10], "--dataset", "copy")
    assert done.returncode == 0, done.stderr
    assert "executed again, 0 differ" in done.stdout
    done = refusal("replay", i, "--dataset", "copy", "--json")
    assert json.loads(done.stdout)["differences"] == []


def test_replay_ends_with_1_and_names_what_differs(refusal: Synth, copy: Path) -> None:
    i = with_other_calls(copy, observation='{"made": "up"}')
    done = refusal("replay", i, "--dataset", "copy")
    assert done.returncode == 1
    assert "call 0: observation" in done.stdout
    assert f"{i} does not replay" in done.stderr


def test_a_table_that_goes_to_a_program_is_not_cut(refusal: Synth, copy: Path) -> None:
    query = "select trajectory_id, task_id, repeat('x', 500) as x from trajectories order by 1"
    done = refusal("sql", query, "--dataset", "copy")
    assert done.returncode == 0, done.stderr
    for row in Dataset.open(copy).rows("trajectories"):
        line = next(line for line in done.stdout.splitlines() if row["trajectory_id"] in line)
        assert row["task_id"] in line
        assert "x" * 500 in line


def test_replay_of_nothing_is_wrong_use(refusal: Synth, copy: Path) -> None:
    done = refusal("replay", "no-such-id", "--dataset", "copy")
    assert done.returncode == 2
    assert "no-such-id" in done.stderr


def test_diff_bytes_of_equal_datasets(refusal: Synth, copy: Path, small_run: Path) -> None:
    done = refusal("diff", str(copy), str(small_run), "--bytes")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert {line.split()[0] for line in lines} == {"same"}
    assert "trajectories" in [line.split()[1] for line in lines]
    assert all(len(digest) == 64 for line in lines for digest in line.split()[2:])


def test_diff_names_the_table_and_the_value(refusal: Synth, copy: Path, small_run: Path) -> None:
    i = with_other_calls(copy, error_code="made_up")
    done = refusal("diff", str(copy), str(small_run), "--bytes")
    assert done.returncode == 1
    different = {line.split()[1] for line in done.stdout.splitlines() if line.startswith("DIFF")}
    assert "tool_calls" in different
    assert "tools" not in different
    done = refusal("diff", str(copy), str(small_run))
    assert done.returncode == 1
    assert f"tool_calls ('{i}', 0) error_code made_up " in done.stdout


def test_export_tells_what_it_leaves_out_and_the_flag_that_lets_it_in(
    refusal: Synth, tmp_path: Path
) -> None:
    dataset = write_dataset(tmp_path / "d", [(trajectory(name), None) for name in ("a", "b")])
    curate(dataset, [decision("a", None, decided_by="code"), decision("b", None)])
    done = refusal("export", "d", "--out", "out")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["left_out"] == {"code_alone": 1}
    assert "left out 1 that code alone accepted (no judge's word counted)" in done.stderr
    done = refusal("export", "d", "--out", "all", "--include-code-alone")
    assert json.loads(done.stdout)["left_out"] == {}
    assert "left out" not in done.stderr
