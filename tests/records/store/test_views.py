"""DuckDB over a dataset: the views of `connect` and of `views.sql`, read by DuckDB alone."""

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from records.store.dataset import Dataset
from records.tables.schemas import JSON
from records.tables.tables import TABLES
from tests.records.rows import commit, row, trajectories

DUCKDB_TYPES = {
    pa.utf8(): "VARCHAR",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.float64(): "DOUBLE",
    pa.bool_(): "BOOLEAN",
    pa.timestamp("us", tz="UTC"): "TIMESTAMP WITH TIME ZONE",
    pa.list_(pa.utf8()): "VARCHAR[]",
    pa.list_(pa.bool_()): "BOOLEAN[]",
    pa.list_(pa.float64()): "DOUBLE[]",
    JSON: "JSON",
}
CURATION = ["curation_id", "grading_id", "accepted", "drop_reason", "score", "train_turns"]
CURATION += ["judge_status", "failed_criterion", "decided_by", "self_judged", "attributed_to"]
CURATION += ["repeats", "turn_faults", "fidelities", "judge_standing"]


def curated(one: str, *, accepted: bool, by: str = "first", **values: Any) -> dict[str, Any]:
    ids = {"curation_id": by, "trajectory_id": one, "grading_id": "g"}
    return row("curation", **ids, accepted=accepted, **values)


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return Dataset.create_or_open(tmp_path / "dataset")


@pytest.fixture
def full(dataset: Dataset) -> Dataset:
    """Two curated trajectories and one that nobody curated, with a task."""
    messages = [{"role": "user", "content": "caf\u00e9 'quoted'"}]
    at = datetime(2026, 1, 2, tzinfo=UTC)
    commit(
        dataset,
        trajectories=trajectories("a", "b", "c", messages=messages, split="train"),
        tasks=[row("tasks", task_id="t", seed=7, initial_state={"room": {}}, split="train")],
        runs=[
            row(
                "runs",
                invocation_id="i",
                event="start",
                happened_at=at,
            )
        ],
    )
    decisions = [
        curated("a", accepted=True, train_turns=[True, False]),
        curated("b", accepted=False, drop_reason="rubric"),
    ]
    commit(dataset, 1, curation=decisions)
    return dataset


def ask(dataset: Dataset, query: str) -> list[tuple]:
    with dataset.connect() as connection:
        return connection.execute(query).fetchall()


def plainly(folder: Path, query: str) -> list[tuple]:
    """Ask a DuckDB that knows nothing but `views.sql` and where the dataset is."""
    with duckdb.connect() as connection:
        connection.execute(f"SET file_search_path = '{str(folder).replace(chr(39), chr(39) * 2)}'")
        connection.execute((folder / "views.sql").read_text())
        return connection.execute(query).fetchall()


def columns_of(dataset: Dataset, view: str) -> list[tuple[str, str]]:
    return [(name, kind) for name, kind, *_ in ask(dataset, f"DESCRIBE {view}")]


@pytest.mark.parametrize("which", ["dataset", "full"])
def test_every_table_is_a_view_with_the_schemas_columns(
    which: str, request: pytest.FixtureRequest
) -> None:
    dataset = request.getfixturevalue(which)
    for table, spec in TABLES.items():
        expected = [(field.name, DUCKDB_TYPES[field.type]) for field in spec.schema]
        found = columns_of(dataset, table)
        if table == "trajectories":
            assert [name for name, _ in found[len(expected) :]] == CURATION
        assert found[: len(expected)] == expected


def test_no_column_needs_quotes_in_a_query(dataset: Dataset) -> None:
    with dataset.connect() as connection:
        for table, spec in TABLES.items():
            for name in spec.schema.names:
                query = f"SELECT max({name}) FROM {table} WHERE {name} IS NULL"
                assert connection.execute(query).fetchall() == [(None,)]


def test_readers_for_trainers_have_their_columns(dataset: Dataset) -> None:
    sft = ["trajectory_id", "split", "messages", "tools", "train_turns", "weight"]
    rl = ["task_id", "split", "agent_id", "rubric", "initial_state", "seed"]
    pairs = ["task_id", "split", "chosen_id", "rejected_id", "chosen", "rejected", "tools"]
    pairs.append("failed_criterion")
    assert [name for name, _ in columns_of(dataset, "sft")] == sft
    assert [name for name, _ in columns_of(dataset, "rl")] == rl
    assert [name for name, _ in columns_of(dataset, "preferences")] == pairs
    assert ask(dataset, "SELECT * FROM sft") == []


def test_plain_duckdb_sees_the_same_through_views_sql(full: Dataset, tmp_path: Path) -> None:
    queries = [
        "SELECT trajectory_id, accepted, drop_reason FROM trajectories ORDER BY ALL",
        "SELECT trajectory_id, train_turns, weight FROM sft",
        "SELECT task_id, initial_state, seed FROM rl",
        "SELECT DISTINCT messages->>'$[0].content' FROM trajectories",
        "SELECT epoch(happened_at) FROM runs",
    ]
    expected = [
        [("a", True, None), ("b", False, "rubric"), ("c", None, None)],
        [("a", [True, False], 1.0)],
        [("t", '{"room":{}}', 7)],
        [("caf\u00e9 'quoted'",)],
        [(1767312000.0,)],
    ]
    assert [ask(full, query) for query in queries] == expected
    moved = tmp_path / "moved to an 'odd' [place]*"
    shutil.move(full.root, moved)
    assert [ask(Dataset.open(moved), query) for query in queries] == expected
    plain = tmp_path / "plain"
    shutil.move(moved, plain)
    assert [plainly(plain, query) for query in queries] == expected


def test_the_newest_curation_counts_whatever_it_is_called(full: Dataset) -> None:
    query = "SELECT trajectory_id FROM trajectories WHERE accepted ORDER BY ALL"
    commit(full, 2, curation=[curated("a", accepted=False, by="0"), curated("c", accepted=True)])
    assert ask(full, query) == plainly(full.root, query) == [("c",)]
    assert ask(full, "SELECT count(*) FROM curation WHERE trajectory_id = 'a'") == [(2,)]
    commit(full, 3, curation=[curated("a", accepted=True, by="z")])
    assert ask(full, query) == plainly(full.root, query) == [("a",), ("c",)]


def test_preferences_pair_the_best_with_the_worst_that_the_agent_failed(dataset: Dataset) -> None:
    def tried(one: str, task: str) -> dict[str, Any]:
        messages = [{"role": "user", "content": one}]
        [made] = trajectories(one, messages=messages, split="train", task_id=task)
        return made

    def rejected(one: str, score: float, party: str | None) -> dict[str, Any]:
        failed = {"failed_criterion": f"of {one}", "attributed_to": party, "decided_by": "code"}
        return curated(one, accepted=False, score=score, drop_reason="failed_state", **failed)

    tasks = {"t": "abcdef", "no worse": "gh", "by code": "ij"}
    commit(dataset, trajectories=[tried(one, task) for task, ids in tasks.items() for one in ids])
    judged = {"accepted": True, "decided_by": "code_and_judge"}
    decided = [
        curated("a", score=0.8, **judged),
        curated("b", score=0.9, **judged),
        curated("c", score=1.0, accepted=True, decided_by="code"),
        rejected("d", 0.3, "agent"),
        rejected("e", 0.2, "agent"),
        rejected("f", 0.1, "user"),
        curated("g", score=1.0, **judged),
        rejected("h", 0.1, None),
        curated("i", score=1.0, accepted=True, decided_by="code"),
        rejected("j", 0.1, "agent"),
    ]
    commit(dataset, 1, curation=decided)
    query = """SELECT task_id, split, chosen_id, rejected_id, chosen->>'$[0].content',
      rejected->>'$[0].content', failed_criterion FROM preferences"""
    expected = [("t", "train", "b", "e", "b", "e", "of e")]
    assert ask(dataset, query) == plainly(dataset.root, query) == expected


def test_sft_leaves_out_what_no_judge_decided(full: Dataset) -> None:
    decided = {"a": "code", "b": "code_and_judge", "c": None}
    rows = [curated(i, accepted=True, by="2", decided_by=by) for i, by in decided.items()]
    commit(full, 2, curation=rows)
    query = "SELECT trajectory_id FROM sft ORDER BY ALL"
    assert ask(full, query) == plainly(full.root, query) == [("b",), ("c",)]


def test_a_retried_trajectory_is_not_accepted_by_the_old_attempts_curation(full: Dataset) -> None:
    commit(full, 2, trajectories=trajectories("a", outcome="passed"), supersedes=True)
    query = "SELECT outcome, accepted FROM trajectories WHERE trajectory_id = 'a'"
    assert ask(full, query) == plainly(full.root, query) == [("passed", None)]
    commit(full, 3, curation=[curated("a", accepted=True)])
    assert ask(full, query) == plainly(full.root, query) == [("passed", True)]
