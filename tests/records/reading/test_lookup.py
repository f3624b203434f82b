"""Rows read by key: the same rows that reading everything gives, from few parts at a time."""

from pathlib import Path

from records.reading.lookup import RowBy, RowsBy
from records.store.dataset import Dataset
from records.tables.schemas import Row
from records.tables.tables import TABLES

RUN = "run"


def row(table: str, **values: object) -> Row:
    names = set(TABLES[table].schema.names) - {"run_id", "schema_version"}
    return dict.fromkeys(names) | values


def trajectory(i: int, turns: int = 1) -> Row:
    return row("trajectories", trajectory_id=f"t{i}", num_turns=turns, messages=[{"n": i}])


def calls(i: int, n: int) -> list[Row]:
    return [row("tool_calls", trajectory_id=f"t{i}", call_index=k, arguments={}) for k in range(n)]


def put(dataset: Dataset, shard: int, rows: dict[str, list[Row]], *, again: bool = False) -> None:
    dataset.commit(run_id=RUN, stage="rollouts", shard=shard, tables=rows, supersedes=again)


def filled(folder: Path) -> Dataset:
    dataset = Dataset.create_or_open(folder)
    for shard in range(5):
        ids = range(4 * shard, 4 * shard + 4)
        rows = {
            "trajectories": [trajectory(i) for i in ids],
            "tool_calls": [call for i in ids for call in calls(i, i % 3)],
        }
        put(dataset, shard, rows)
    return dataset


def test_every_row_is_found_by_its_key_with_one_part_in_memory(tmp_path: Path):
    dataset = filled(tmp_path / "d")
    by_id = RowBy(dataset, "trajectories", "trajectory_id", keep=1)
    assert dict(by_id) == {t["trajectory_id"]: t for t in dataset.rows("trajectories")}
    groups = RowsBy(dataset, "tool_calls", "trajectory_id", keep=1)
    assert set(groups) == {f"t{i}" for i in range(20) if i % 3}
    assert groups["t5"] == calls(5, 2)
    assert "t0" not in groups
    assert groups.get("t0", ()) == ()


def test_a_superseding_row_counts_and_takes_the_old_calls_with_it(tmp_path: Path):
    dataset = filled(tmp_path / "d")
    put(
        dataset,
        0,
        {"trajectories": [trajectory(2, turns=7)], "tool_calls": calls(2, 1)},
        again=True,
    )
    by_id = RowBy(dataset, "trajectories", "trajectory_id")
    groups = RowsBy(dataset, "tool_calls", "trajectory_id")
    assert by_id["t2"]["num_turns"] == 7
    assert groups["t2"] == calls(2, 1)
    assert dict(by_id) == {t["trajectory_id"]: t for t in dataset.rows("trajectories")}
    assert sum(map(len, groups.values())) == len(dataset.rows("tool_calls"))


def test_rows_come_part_by_part_with_the_columns_named(tmp_path: Path):
    dataset = filled(tmp_path / "d")
    parts = list(dataset.in_commits("trajectories", ("trajectory_id", "num_turns")))
    assert [len(part) for part in parts] == [4] * 5
    assert parts[1][0] == {"trajectory_id": "t4", "num_turns": 1}
    assert dict(dataset.column("tool_calls", "call_index"))[1] == [0, 0, 1]
