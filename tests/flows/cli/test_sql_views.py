"""`synth sql --views`: the views of a dataset in any DuckDB, wherever that is started."""

import re
from pathlib import Path

import duckdb
import pytest

from flows.cli.commands.data import sql
from flows.cli.main import run
from records.store.dataset import Dataset
from tests.synth.small_dataset import trajectory, write_dataset


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    """In a folder whose name DuckDB would take for a pattern."""
    rows = [(trajectory("a"), None), (trajectory("b"), "low_score")]
    return write_dataset(tmp_path / "it's [a] *folder?" / "boats", rows)


@pytest.mark.parametrize("written", ["whole", "relative"])
def test_the_views_work_from_another_folder(
    written: str,
    dataset: Dataset,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    path = dataset.root.relative_to(tmp_path) if written == "relative" else dataset.root
    assert run(["sql", "--views", "--dataset", str(path)]) == 0
    statements = capsys.readouterr().out
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with duckdb.connect() as other, dataset.connect() as ours:
        other.execute(statements)
        for query in ("SELECT trajectory_id FROM sft", "SHOW TABLES", "FROM trajectories"):
            assert other.execute(query).fetchall() == ours.execute(query).fetchall()


def test_the_help_names_every_view(dataset: Dataset) -> None:
    with dataset.connect() as db:
        there = {name for (name,) in db.execute("SHOW TABLES").fetchall()}
    assert there - set(re.findall(r"\w+", str(sql.__doc__))) == set()


@pytest.mark.parametrize("words", [[], ["select 1", "--views"], ["--views", "--json"]])
def test_a_query_and_views_are_one_or_the_other(
    words: list[str], dataset: Dataset, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["sql", *words, "--dataset", str(dataset.root)]) == 2
    assert "takes a query, or --views" in capsys.readouterr().err
