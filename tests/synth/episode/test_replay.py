"""Replay: a stored trajectory comes out the same, and a planted difference is found."""

import asyncio
import copy
from pathlib import Path
from typing import Any

import pytest

from records.errors import ItemError
from records.store.dataset import Dataset
from records.tables.schemas import Row
from records.tables.tables import TABLES
from synth.episode.replay import ReplayDifference, replay, replay_rows
from tests.synth.clinic import TASK, catalogue
from tests.synth.rollout_work import rollouts

Rows = dict[str, list[Row]]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    return asyncio.run(rollouts(tmp_path_factory.mktemp("played"), "offline", 6, 3))


def differences(trajectory: Row, rows: Rows) -> list[ReplayDifference]:
    own = [c for c in rows["tool_calls"] if c["trajectory_id"] == trajectory["trajectory_id"]]
    report = asyncio.run(replay_rows(trajectory, own, TASK, catalogue()))
    assert report.num_calls == len(own)
    return report.differences


def test_what_was_recorded_comes_out_again(played: Rows):
    """Injected errors, hashes, changes and the reward included."""
    assert any(t["injected_outcomes"] for t in played["trajectories"])
    assert any(t["objective_reward"] == 1.0 for t in played["trajectories"])
    for trajectory in played["trajectories"]:
        assert differences(trajectory, played) == []


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("observation", "{}"),
        ("state_hash_after", "0" * 32),
        (
            "state_diff",
            [{"op": "delete", "entity": "patient", "id": "PT-1", "before": {}, "after": None}],
        ),
        ("is_error", True),
        ("policy_violations", ["no_write_off"]),
        ("error_code", "not_found"),
    ],
)
def test_a_planted_difference_is_found(played: Rows, column: str, value: Any):
    rows = copy.deepcopy(played)
    trajectory = next(t for t in rows["trajectories"] if t["objective_reward"] == 1.0)
    calls = [c for c in rows["tool_calls"] if c["trajectory_id"] == trajectory["trajectory_id"]]
    call = next(c for c in calls if not c["is_error"])
    found = f"call {call['call_index']}: {column}"
    assert call[column] != value
    call[column] = value
    assert found in [difference.where for difference in differences(trajectory, rows)]


@pytest.mark.parametrize(
    ("column", "value"), [("state_hash_final", "0" * 32), ("objective_reward", 0.5)]
)
def test_a_planted_end_is_found(played: Rows, column: str, value: Any):
    rows = copy.deepcopy(played)
    trajectory = rows["trajectories"][0]
    trajectory[column] = value
    assert [d.where for d in differences(trajectory, rows)] == [column]


def test_another_seed_or_a_missing_call_is_found(played: Rows):
    stormy = [t for t in played["trajectories"] if t["injected_outcomes"]]
    assert any(differences(t | {"seed": 1}, played) for t in stormy)
    fewer = {"tool_calls": played["tool_calls"][:-1]}
    assert "number of calls" in {
        d.where for t in played["trajectories"] for d in differences_of_calls(t, fewer)
    }


def differences_of_calls(trajectory: Row, rows: Rows) -> list[ReplayDifference]:
    own = [c for c in rows["tool_calls"] if c["trajectory_id"] == trajectory["trajectory_id"]]
    return asyncio.run(replay_rows(trajectory, own, TASK, catalogue())).differences


def test_a_dataset_is_replayed_by_id(played: Rows, tmp_path: Path):
    dataset = Dataset.create_or_open(tmp_path / "data")
    blank = dict.fromkeys(TABLES["tasks"].schema.names)
    task = {k: v for k, v in (blank | TASK).items() if k not in ("run_id", "schema_version")}
    tables = {"tasks": [task | {"attempt": 0} if "attempt" in task else task], **played}
    dataset.commit(run_id="r", stage="rollouts", shard=0, tables=tables)
    for trajectory in played["trajectories"]:
        report = asyncio.run(replay(dataset, trajectory["trajectory_id"], catalogue()))
        assert report.differences == []
    with pytest.raises(ItemError, match="no trajectory_id 'nothing'"):
        asyncio.run(replay(dataset, "nothing", catalogue()))
