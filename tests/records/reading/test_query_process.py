"""A query that DuckDB itself does not stop ends its process, and the next one is answered."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from records.errors import ConfigError
from records.reading import query_process
from records.reading.query_process import QueryProcess
from records.store.dataset import Dataset
from tests.records.rows import commit, trajectories


@pytest.fixture
def process(tmp_path: Path) -> Iterator[QueryProcess]:
    dataset = Dataset.create_or_open(tmp_path / "data")
    commit(dataset, trajectories=trajectories("a", "b"))
    process = QueryProcess(dataset.root, memory="500MB")
    yield process
    process.close()


def test_it_answers_over_the_newest_commit_and_tells_what_is_wrong(
    process: QueryProcess, tmp_path: Path
) -> None:
    query = "SELECT count(*) AS n FROM trajectories"
    assert process.run(query, most_rows=5, timeout_s=60) == (["n"], [(2,)])
    commit(Dataset.open(tmp_path / "data"), shard=1, trajectories=trajectories("c"))
    assert process.run(query, most_rows=5, timeout_s=60).rows == [(3,)]
    assert len(process.run("SELECT * FROM range(9)", most_rows=5, timeout_s=60).rows) == 5
    for wrong, says in (
        ("SELECT nonsense", "tables:"),
        ("CREATE TABLE t (a INT)", "only one reading statement"),
        ("SELECT * FROM read_text('/etc/hostname')", "Permission Error"),
    ):
        with pytest.raises(ConfigError, match=says):
            process.run(wrong, most_rows=5, timeout_s=60)


@pytest.mark.slow
def test_what_the_planner_computes_is_bounded_too(
    process: QueryProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query_process, "GRACE_S", 0.1)
    process.run("SELECT 1", most_rows=5, timeout_s=60)
    planned = "SELECT n FROM (SELECT unnest(range({})) AS n) WHERE n < 3 OR hash(n) = 1"
    with pytest.raises(ConfigError, match=r"stopped after 0\.2 s"):
        process.run(planned.format(30_000_000), most_rows=5, timeout_s=0.2)
    with pytest.raises(ConfigError, match=r"(?i)memory|alloc"):
        process.run(planned.format(1_000_000_000), most_rows=5, timeout_s=300)
    assert process.run("SELECT 1 AS a", most_rows=5, timeout_s=60).rows == [(1,)]
