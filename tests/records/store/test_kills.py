"""kill -9 at every write: what is left is a dataset, and the same work completes it."""

from pathlib import Path

import duckdb
import pytest

from records.reading.canonical import canonical_bytes
from records.store.dataset import Dataset
from tests.killing import killed_everywhere, run
from tests.records.store.commit_work import KEPT, two_shards

TABLES = ("trajectories", "tool_calls")


def ids_by_plain_duckdb(connection: duckdb.DuckDBPyConnection, folder: Path) -> set[str]:
    connection.execute(f"SET file_search_path = '{folder}'")
    connection.execute((folder / "views.sql").read_text())
    found = connection.execute("SELECT trajectory_id FROM trajectories").fetchall()
    return {one for (one,) in found}


@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.slow), 18])
def test_killed_at_any_write_the_same_work_completes(step: int, tmp_path: Path) -> None:
    run(two_shards, tmp_path / "whole")
    whole = Dataset.open(tmp_path / "whole")
    expected = [canonical_bytes(whole, table) for table in TABLES]
    plain = duckdb.connect()
    for folder in killed_everywhere(two_shards, tmp_path / "killed", step=step):
        if (folder / "dataset.json").exists():
            left = Dataset.open(folder)
            assert left.ids("trajectories") in (set(), {"a", "b"}, {"a", "b", "c"})
            assert left.ids("trajectories") == left.item_statuses("rollouts").keys()
            if (folder / "views.sql").exists():
                assert ids_by_plain_duckdb(plain, folder) <= left.ids("trajectories")
        run(two_shards, folder)
        resumed = Dataset.open(folder)
        assert [canonical_bytes(resumed, table) for table in TABLES] == expected
        assert resumed.item_statuses("rollouts") == dict.fromkeys("abc", KEPT)
        parts = [part.name for commit in resumed.commits() for part in commit.parts]
        assert sorted(path.name for path in folder.glob("tables/*/*")) == sorted(parts)
        assert all(name in (folder / "views.sql").read_text() for name in parts)
        assert not list(folder.rglob(".tmp-*"))
        assert not (folder / "lease.json").exists()
