"""A dataset of schema version 1 is read under today's names, also where newer parts lie beside."""

import json
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from records.errors import ConfigError, SynthError
from records.reading.canonical import canonical_bytes, differences
from records.reading.lookup import RowsBy
from records.reading.query import run_sql
from records.store.dataset import Dataset
from records.tables.columns import given_columns, renamed_row
from records.tables.schemas import SCHEMA_VERSION
from records.tables.tables import TABLES
from tests.records.kept import SCHEMA_1, copy_of_schema_1

RENAMED = [(spec.name, *pair) for spec in TABLES.values() for pair in spec.renamed.items()]
VALUES = {
    ("verdicts", "kind"): ("hack_check", "unsupported_claims"),
    ("calibration", "criterion_id"): ("hack_check", "unsupported_claims"),
    ("calibration", "checker_version"): ("template-policy@", "offline-model@"),
    ("agents", "model"): ("template-policy", "offline-model"),
    ("llm_calls", "model"): ("template-policy", "offline-model"),
    ("trajectories", "models"): ('"template-policy"', '"offline-model"'),
    ("tasks", "rubric"): ('"accept_at":0.7', '"pass_threshold":0.7'),
}


@pytest.fixture
def kept(tmp_path: Path) -> Dataset:
    return Dataset.open(copy_of_schema_1(tmp_path))


def stored(table: str, column: str) -> list[Any]:
    """The values of a column as they lie on the disk."""
    files = sorted((SCHEMA_1 / "tables" / table).glob("*.parquet"))
    return [value for file in files for value in pq.read_table(file)[column].to_pylist()]


def mixed(dataset: Dataset) -> Dataset:
    """With the first trajectory's rows a second time, superseded by parts of today, and copies of
    a calibration's rows under another perturbation."""
    one = dataset.rows("trajectories")[0]
    of_it = {
        table: [r for r in dataset.rows(table) if r["trajectory_id"] == one["trajectory_id"]]
        for table in ("tool_calls", "verdicts", "curation", "calibration")
    }
    newer = {"trajectories": [one | {"num_errors": 77}]} | of_it
    dataset.commit(run_id="r", stage="test", shard=0, tables=newer, supersedes=True)
    tried = [r for r in dataset.rows("calibration") if r["perturbation"] == "control"]
    added = [r | {"perturbation": "another"} for r in tried]
    dataset.commit(run_id="r", stage="test", shard=1, tables={"calibration": added})
    return dataset


@pytest.mark.parametrize(("table", "name", "earlier"), RENAMED)
def test_a_column_is_read_under_its_new_name(
    kept: Dataset, table: str, name: str, earlier: str
) -> None:
    values = sorted(map(str, stored(table, earlier)))
    assert len(values) > 1
    rows = kept.rows(table)
    assert list(rows[0]) == given_columns(TABLES[table])
    if (table, name) != ("curation", "judge_status"):
        assert sorted(str(row[name]) for row in rows) == values
    assert [row[name] for row in kept.rows(table, [name])] == [row[name] for row in rows]
    assert sorted(str(v) for _, part in kept.column(table, name) for v in part) == values


@pytest.mark.parametrize(("where", "names"), VALUES.items())
def test_a_stored_word_is_read_as_the_new_one(
    kept: Dataset, where: tuple[str, str], names: tuple[str, str]
) -> None:
    table, column = where
    before = sorted(str(value) for value in stored(table, column))
    assert any(names[0] in text for text in before)
    with kept.connect() as db:
        found = db.execute(f"SELECT {column}::VARCHAR FROM {table}").fetchall()
    assert len(found) == len(before)
    assert not any(names[0] in str(text) for (text,) in found)
    assert any(names[1] in str(text) for (text,) in found)
    rows = [json.dumps(row[column]).replace(": ", ":") for row in kept.rows(table)]
    assert not any(names[0] in text for text in rows)
    assert any(names[1] in text for text in rows)


def test_views_and_rows_say_the_same_of_old_new_and_mixed(kept: Dataset) -> None:
    for dataset in (kept, mixed(kept)):
        with dataset.connect() as db:
            for table, spec in TABLES.items():
                names = [n for n in spec.schema.names if n not in ("kept", "drop_reason")]
                seen = db.sql(f"SELECT {', '.join(names)} FROM {table}").to_arrow_table()
                seen = seen.sort_by([(key, "ascending") for key in spec.primary_key])
                known = dataset.arrow(table).select(names)
                assert seen.num_rows == known.num_rows, table
                for name in names:
                    as_text = [[str(v) for v in t[name].to_pylist()] for t in (seen, known)]
                    assert as_text[0] == as_text[1], f"{table}.{name}"


@pytest.mark.parametrize(("table", "name", "earlier"), RENAMED)
def test_views_carry_both_names(kept: Dataset, table: str, name: str, earlier: str) -> None:
    query = f"SELECT count(*), count(*) FILTER ({name} IS DISTINCT FROM {earlier}) FROM {table}"
    [(count, differing)] = run_sql(mixed(kept), query).rows
    assert count > 1
    assert differing == 0
    folder = kept.root.as_posix()
    with duckdb.connect() as db:  # as a user reads views.sql
        db.execute(f"SET file_search_path = '{folder}'")
        db.execute((kept.root / "views.sql").read_text())
        assert db.execute(query).fetchall() == [(count, 0)]


def test_a_mixed_dataset_is_one(kept: Dataset) -> None:
    before = {table: kept.rows(table) for table in TABLES}
    dataset = mixed(kept)
    [one] = [t for t in dataset.rows("trajectories") if t["num_errors"] == 77]
    assert len(dataset.rows("trajectories")) == len(before["trajectories"])
    assert dataset.rows("tool_calls") == before["tool_calls"]
    assert dataset.rows("verdicts") == before["verdicts"]
    tried = {r["perturbation"] for r in dataset.rows("calibration")}
    assert {"another", "control"} < tried
    found = RowsBy(dataset, "tool_calls", "trajectory_id")[one["trajectory_id"]]
    assert [call for call in found if call["executed_by"]]
    versions = "SELECT DISTINCT schema_version FROM trajectories ORDER BY ALL"
    assert run_sql(dataset, versions).rows == [(1,), (SCHEMA_VERSION,)]
    again = {"calibration": before["calibration"][:1]}
    with pytest.raises(SynthError, match="grading_id, trajectory_id, perturbation, criterion_id"):
        dataset.commit(run_id="r", stage="test", shard=2, tables=again)


def test_the_same_rows_written_today_do_not_differ(kept: Dataset, tmp_path: Path) -> None:
    today = Dataset.create_or_open(tmp_path / "today")
    run_of = {table: kept.arrow(table)["run_id"].to_pylist() for table in TABLES}
    for table in ("tasks", "tool_calls", "verdicts", "calibration", "curation", "trajectories"):
        rows = kept.rows(table)
        for run_id in dict.fromkeys(run_of[table]):
            own = [r for r, by in zip(rows, run_of[table], strict=True) if by == run_id]
            today.commit(run_id=run_id, stage=table, shard=0, tables={table: own})
        assert differences(kept, today, (table,)) == []
        assert canonical_bytes(kept, table) == canonical_bytes(today, table)


def test_a_journalled_row_gets_the_new_names() -> None:
    call = {"name": "t", "fidelity": "mcp", "breaches": ["r"]}
    wanted = {"name": "t", "executed_by": "mcp", "policy_violations": ["r"]}
    assert renamed_row("tool_calls", call) == wanted
    assert renamed_row("tool_calls", wanted) == wanted
    asked = {"call_id": "c", "model": "template-policy-clumsy"}
    assert renamed_row("llm_calls", asked)["model"] == "offline-model-clumsy"


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"columns": ("trajectory_id", "unheard_of")}, "unheard_of"),
        ({"columns": ("trajectory_id", "fidelities"), "schema_version": 2}, "fidelities"),
        ({"schema_version": SCHEMA_VERSION + 1}, f"schema version {SCHEMA_VERSION + 1}"),
    ],
)
def test_what_a_newer_program_wrote_is_refused(
    kept: Dataset, change: dict[str, Any], named: str
) -> None:
    [path] = [p for p in (kept.root / "commits").iterdir() if '"trajectories"' in p.read_text()]
    commit = json.loads(path.read_text())
    part = next(part for part in commit["parts"] if part["table"] == "trajectories")
    part.update(change)
    path.write_text(json.dumps(commit))
    moved = kept.root.rename(kept.root.parent / "moved")
    with pytest.raises(ConfigError, match=f"newer than the program.*{named}"):
        Dataset.open(moved).commits()
