"""`run_sql`: reads what a dataset holds, tells what is wrong, and can do nothing else."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from records.errors import ConfigError
from records.reading.query import LockedViews, run_sql
from records.store.dataset import Dataset
from tests.records.rows import commit, row, trajectories


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    dataset = Dataset.create_or_open(tmp_path / "data's set")
    at = datetime(2026, 1, 2, 3, tzinfo=UTC)
    commit(
        dataset,
        trajectories=trajectories("a", "b", num_turns=3, messages=[{"role": "user"}]),
        llm_calls=[row("llm_calls", call_id="c", started_at=at, cost_usd=0.25)],
    )
    return dataset


def test_columns_and_rows(dataset: Dataset) -> None:
    query = "SELECT trajectory_id AS id, num_turns, messages FROM trajectories ORDER BY 1"
    columns, rows = run_sql(dataset, query)
    assert columns == ["id", "num_turns", "messages"]
    assert rows == [("a", 3, '[{"role":"user"}]'), ("b", 3, '[{"role":"user"}]')]


def test_values_are_plain_python(dataset: Dataset) -> None:
    query = """SELECT sum(num_turns), avg(num_turns), 1.5::DECIMAL(9, 2), NULL, count(*) AS n,
        (SELECT started_at FROM llm_calls), ['a'], {'b': 1} FROM trajectories; -- done"""
    [values] = run_sql(dataset, query).rows
    at = datetime(2026, 1, 2, 3, tzinfo=UTC)
    assert values == (6, 3.0, 1.5, None, 2, at, ["a"], {"b": 1})
    assert [type(value) for value in values[:3]] == [int, float, float]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("[1::HUGEINT]", [1]),
        ("{'a': max(1.5::DECIMAL(9, 2)), 'b': [sum(n)]}", {"a": 1.5, "b": [6]}),
        ("map {'a': 2::HUGEINT}", [["a", 2]]),
        ("list(n::DECIMAL(9, 1) ORDER BY n)", [1.0, 2.0, 3.0]),
    ],
)
def test_values_within_structures_are_plain_too(
    dataset: Dataset, expression: str, value: object
) -> None:
    query = f"SELECT any_value(v) FROM (SELECT {expression} AS v FROM range(1, 4) AS t(n))"
    [[found]] = run_sql(dataset, query).rows
    assert json.loads(json.dumps(found)) == value


@pytest.mark.parametrize(
    "value", ["date 'infinity'", "timestamptz '290000-01-01'", "[timestamp '-infinity']"]
)
def test_a_time_that_python_cannot_hold_is_told(dataset: Dataset, value: str) -> None:
    with pytest.raises(ConfigError, match="column 'far' holds a date or a time"):
        run_sql(dataset, f"SELECT {value} AS far")


def test_what_fails_after_the_first_rows_is_told_too(dataset: Dataset) -> None:
    late = "SELECT (CASE WHEN range = 900000 THEN 'x' ELSE '1' END)::INT AS n FROM range(1000000)"
    with LockedViews(dataset) as views:
        with pytest.raises(ConfigError, match="Conversion Error"):
            views.run(late, most_rows=950_000)
        slow = "SELECT n FROM range(1000000000000) AS t(n) WHERE n < 9000 OR hash(n) = 1"
        with pytest.raises(ConfigError, match=r"stopped after 0\.5 s"):
            views.run(slow, most_rows=10_000, timeout_s=0.5)


def test_columns_of_one_name_are_all_there(dataset: Dataset) -> None:
    assert run_sql(dataset, "SELECT 1 AS a, 2 AS a") == (["a", "a"], [(1, 2)])


@pytest.mark.parametrize(
    "query",
    [
        "FROM sft",
        "SHOW TABLES",
        "DESCRIBE tasks",
        "SUMMARIZE trajectories",
        "VALUES (1)",
        "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 3) FROM n",
        "SELECT 1 UNION SELECT 2 EXCEPT SELECT 1",
        "WITH p AS (PIVOT trajectories ON trajectory_id IN ('a') USING count(*)) FROM p",
    ],
)
def test_every_way_to_read_works(dataset: Dataset, query: str) -> None:
    assert run_sql(dataset, query).columns


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("SELEC 1", "syntax error at or near"),
        ("SELECT * FROM trajectorys", "does not exist"),
        ("SELECT colour FROM trajectories", "colour"),
        ("SELECT 1 / 'x'", "Conversion Error"),
        ("SELECT (SELECT num_turns FROM trajectories UNION ALL SELECT 1)", "More than one row"),
    ],
)
def test_a_wrong_query_names_what_is_wrong_and_the_tables(
    dataset: Dataset, query: str, says: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        run_sql(dataset, query)
    assert says in str(refused.value)
    assert "tables: agents, calibration, contaminations, curation" in str(refused.value)


@pytest.mark.parametrize(
    "query",
    [
        "",
        ";",
        "-- nothing",
        "SELECT 1; SELECT 2",
        "CREATE TABLE t (a INT)",
        "DROP VIEW tasks",
        "COPY (SELECT 1) TO '{root}/tables/x.csv'",
        "WITH w AS (COPY (SELECT 1) TO '{root}/tables/x.csv') SELECT 1",
        "SELECT (WITH w AS (COPY (SELECT 1) TO '{root}/tables/x.csv') SELECT 1)",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO '{root}/tables/x.csv'",
        "EXPORT DATABASE '{root}/tables'",
        "ATTACH '{root}/tables/x.db'",
        "SELECT * FROM query('COPY (SELECT 1) TO ''{root}/tables/x.csv''')",
        "SELECT * FROM '{root}/../secret.csv'",
        "SELECT * FROM read_text('{root}/dataset.json')",
        "SELECT * FROM read_text('/etc/hostname')",
        "SELECT * FROM glob('/etc/*')",
        "SELECT * FROM 'https://example.com/x.parquet'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "PRAGMA enable_profiling",
        "CALL pragma_version()",
    ],
)
def test_nothing_but_reading_the_tables(dataset: Dataset, query: str) -> None:
    (dataset.root.parent / "secret.csv").write_text("secret\n1\n")
    before = {path: path.stat().st_mtime_ns for path in dataset.root.parent.rglob("*")}
    quoted = str(dataset.root).replace("'", "''")
    with pytest.raises(ConfigError):
        run_sql(dataset, query.replace("{root}", quoted))
    assert {path: path.stat().st_mtime_ns for path in dataset.root.parent.rglob("*")} == before


def test_locked_views_are_bounded_in_rows_and_time(dataset: Dataset) -> None:
    with LockedViews(dataset, memory="500MB") as views:
        assert len(views.run("SELECT * FROM range(10000000000)", most_rows=7).rows) == 7
        assert len(views.run("SELECT * FROM trajectories", most_rows=7).rows) == 2
        assert views.run("SHOW TABLES", most_rows=1).columns == ["name"]
        for query in (
            "SELECT count(*) FROM range(1000000000000)",
            "SELECT * FROM range(1000000000000) AS t(n) WHERE n = 999999999999",
        ):
            with pytest.raises(ConfigError, match=r"stopped after 0\.2 s"):
                views.run(query, most_rows=7, timeout_s=0.2)
        with pytest.raises(ConfigError, match="Out of Memory"):
            views.run("SELECT array_agg(range) FROM range(1000000000)", most_rows=7)
        assert views.run("SELECT 1 AS a", timeout_s=5).rows == [(1,)]
