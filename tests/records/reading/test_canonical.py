"""Canonical bytes depend on the rows alone, and differences say which value it is."""

import itertools
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from records.reading.canonical import CONTENT, RowDifference, canonical_bytes, differences
from records.store.dataset import Dataset
from tests.examples import examples
from tests.records.rows import commit, row, trajectories

ROWS = [
    trajectories(f"{i:02d}", messages=[{"content": "m" * i}], num_turns=i % 3, error=None)[0]
    for i in range(12)
]


def dataset_of(folder: str | Path, shards: Sequence[Sequence[dict]]) -> Dataset:
    dataset = Dataset.create_or_open(folder)
    for index, rows in enumerate(shards):
        commit(dataset, index, trajectories=list(rows))
    return dataset


@given(st.permutations(ROWS), st.lists(st.integers(0, len(ROWS)), max_size=4))
@settings(deadline=None, max_examples=examples(15))
def test_shards_and_order_do_not_count(rows: list[dict], cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(rows)]
    shards = [rows[a:b] for a, b in itertools.pairwise(edges)]
    with TemporaryDirectory() as first, TemporaryDirectory() as second:
        cut, whole = dataset_of(first, shards), dataset_of(second, [ROWS])
        assert canonical_bytes(cut, "trajectories") == canonical_bytes(whole, "trajectories")
        assert differences(cut, whole) == []


def test_any_other_value_changes_the_bytes_and_is_named(tmp_path: Path) -> None:
    a = dataset_of(tmp_path / "a", [ROWS[:5]])
    changed = [ROWS[0], ROWS[1] | {"num_turns": 9, "messages": None}, *ROWS[3:6]]
    b = dataset_of(tmp_path / "b", [changed])
    assert canonical_bytes(a, "trajectories") != canonical_bytes(b, "trajectories")
    assert differences(a, b) == [
        RowDifference("trajectories", "01", "messages", [{"content": "m"}], None),
        RowDifference("trajectories", "01", "num_turns", 1, 9),
        RowDifference("trajectories", "02", None, True, False),
        RowDifference("trajectories", "05", None, False, True),
    ]


def test_measured_tables_are_compared_on_demand_only(tmp_path: Path) -> None:
    a, b = dataset_of(tmp_path / "a", []), dataset_of(tmp_path / "b", [])
    key = {"invocation_id": "i", "stage": "s", "shard": 0, "name": "n"}
    commit(a, timings=[row("timings", **key, seconds=1.0)])
    commit(b, timings=[row("timings", **key, seconds=2.0)])
    assert "timings" not in CONTENT
    assert differences(a, b) == []
    expected = RowDifference("timings", ("i", "s", 0, "n"), "seconds", 1.0, 2.0)
    assert differences(a, b, ("timings",)) == [expected]


def test_an_empty_table_has_bytes_too(tmp_path: Path) -> None:
    a, b = dataset_of(tmp_path / "a", []), dataset_of(tmp_path / "b", [])
    assert canonical_bytes(a, "tasks") == canonical_bytes(b, "tasks")
