"""The store: what is committed is read back, whole, once, and by any DuckDB."""

from pathlib import Path

import pytest

from records.errors import SynthError
from records.store import Dataset, ItemStatus
from tests.records.rows import trajectories


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return Dataset.create_or_open(tmp_path / "dataset")


def test_committed_rows_are_read_back_sorted(dataset: Dataset) -> None:
    rows = trajectories("b", "a", messages=[{"role": "user", "content": "h\u00e9"}])
    items = {"a": ItemStatus("kept", None), "c": ItemStatus("dropped", "too_long")}
    number = dataset.commit(
        run_id="r", stage="rollouts", shard=0, tables={"trajectories": rows}, items=items
    )
    again = Dataset.open(dataset.root)
    assert number == 1
    assert again.rows("trajectories") == rows[::-1]
    assert again.ids("trajectories") == {"a", "b"}
    assert again.item_statuses("rollouts") == items
    assert again.has_shard("r", "rollouts", 0)


def test_a_shard_is_committed_once(dataset: Dataset) -> None:
    shard = {"run_id": "r", "stage": "rollouts", "shard": 0}
    dataset.commit(**shard, tables={"trajectories": trajectories("a")})
    with pytest.raises(SynthError, match=r"shard 0 of rollouts .* committed already"):
        dataset.commit(**shard, tables={"trajectories": trajectories("b")})
    assert dataset.ids("trajectories") == {"a"}
