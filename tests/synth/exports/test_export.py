"""Which rows are exported, what says what they are worth, and how many make several files."""

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from records.errors import ConfigError, ItemError
from records.store.dataset import Dataset
from synth.exports import files, stored_rows
from synth.exports.export import export_dataset
from synth.exports.formats.columns import HF_COLUMNS, MARKS
from synth.exports.formats.messages import (
    with_object_arguments,
)
from tests.synth.exports.loading import card_of, load
from tests.synth.publish.judged import curate, decision
from tests.synth.small_dataset import conversation, trajectory, write_dataset


@pytest.mark.slow
def test_load_dataset_gives_the_rows_of_the_sql_view(dataset: Dataset, tmp_path: Path) -> None:
    made = export_dataset(dataset, tmp_path / "out", include_heldout=True, reasoning="field")
    loaded = load(tmp_path / "out")
    found = [row for split in loaded for row in loaded[split]]
    with dataset.connect() as db:
        view = db.sql("SELECT * FROM sft ORDER BY trajectory_id").to_arrow_table().to_pylist()
    assert len(found) == len(view) == sum(made.rows.values()) == 5
    for row, expected in zip(sorted(found, key=lambda r: r["trajectory_id"]), view, strict=True):
        assert row["messages"] == with_object_arguments(json.loads(expected["messages"]))
        assert row["tools"] == json.loads(expected["tools"])
        for column in ("trajectory_id", "split", "train_turns", "weight"):
            assert row[column] == expected[column]
        assert set(row) == set(HF_COLUMNS)


@pytest.mark.slow
@pytest.mark.parametrize("format_", ["hf", "openai"])
def test_every_trajectory_is_exported_or_counted(
    format_: Any, dataset: Dataset, tmp_path: Path
) -> None:
    made = export_dataset(dataset, tmp_path / "out", format=format_)
    assert made.rows == {"train": 3}
    assert made.left_out == {"not_accepted": 1, "held_out": 2}
    more = export_dataset(dataset, tmp_path / "all", format=format_, include_heldout=True)
    assert more.rows == {"train": 3, "heldout_task": 1, "heldout_domain": 1}
    assert more.left_out == {"not_accepted": 1}
    loaded = load(tmp_path / "all")
    assert {split: rows.num_rows for split, rows in loaded.items()} == more.rows


@pytest.mark.parametrize("license_", [None, "unknown", ""])
def test_unknown_licences_stay_unless_asked_for(license_: str | None, tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "data", [(trajectory("a"), None)], license_=license_)
    with pytest.raises(ConfigError, match=r"1 unknown_license; .* --include-unknown-license"):
        export_dataset(dataset, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    export_dataset(dataset, tmp_path / "out", include_unknown_license=True)
    front, body = card_of(tmp_path / "out")
    assert front["license"] == ["apache-2.0", "unknown"]
    assert "| unknown | 1 | 1 |" in body
    assert "| Apache\\-2\\.0 | 1 | 1 |" in body


def test_an_agent_that_nobody_knows_has_tools_of_unknown_licence(tmp_path: Path) -> None:
    rows = [(trajectory("a"), None), (trajectory("b", agent_id="gone"), None)]
    dataset = write_dataset(tmp_path / "data", rows)
    made = export_dataset(dataset, tmp_path / "out")
    assert (made.rows, made.left_out) == ({"train": 1}, {"unknown_license": 1})


def test_a_trajectory_without_a_split_is_not_taken_for_training(tmp_path: Path) -> None:
    rows = [(trajectory("a"), None), (trajectory("b", split=None), None)]
    dataset = write_dataset(tmp_path / "data", rows)
    for include_heldout in (False, True):  # no file is named for it: it is counted, never lost
        out = tmp_path / f"out-{include_heldout}"
        made = export_dataset(dataset, out, include_heldout=include_heldout)
        assert (made.rows, made.left_out) == ({"train": 1}, {"held_out": 1})


MARKED = {
    "both": {},
    "itself": {"self_judged": True, "judge_status": "uncertain"},
    "alone": {"decided_by": "code", "judge_status": "below_minimum"},
    "unasked": {"decided_by": "code", "judge_status": None},
}


@pytest.fixture(scope="module")
def marked(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """Accepted ones, of which code alone decided two; of `older` nothing is noted."""
    rows = [(trajectory(name), None) for name in (*MARKED, "older")]
    made = write_dataset(tmp_path_factory.mktemp("marked") / "data", rows)
    curate(made, [decision(name, None, **marks) for name, marks in MARKED.items()])
    return made


def test_what_code_alone_accepted_stays_unless_asked_for(marked: Dataset, tmp_path: Path) -> None:
    made = export_dataset(marked, tmp_path / "out")
    assert (made.rows, made.left_out) == ({"train": 3}, {"code_alone": 2})
    with marked.connect() as db:
        view = db.execute("SELECT trajectory_id FROM sft ORDER BY 1").fetchall()
    table = pq.read_table(tmp_path / "out/data/train-00000-of-00001.parquet")
    assert table["trajectory_id"].to_pylist() == [i for (i,) in view] == ["both", "itself", "older"]
    assert "- code\\_alone: 2 (accepted by code alone" in (tmp_path / "out/README.md").read_text()
    more = export_dataset(marked, tmp_path / "all", include_code_alone=True)
    assert (more.rows, more.left_out) == ({"train": 5}, {})


def test_where_code_alone_accepted_everything_the_flag_is_named(tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "data", [(trajectory("t"), None)])
    curate(dataset, [decision("t", None, decided_by="code")])
    with pytest.raises(ConfigError, match=r"1 code_alone; .* add --include-code-alone$"):
        export_dataset(dataset, tmp_path / "out")


def test_every_row_of_both_forms_says_what_the_judges_word_on_it_is_worth(
    marked: Dataset, tmp_path: Path
) -> None:
    export_dataset(marked, tmp_path / "hf", include_code_alone=True)
    export_dataset(marked, tmp_path / "openai", format="openai", include_code_alone=True)
    table = pq.read_table(tmp_path / "hf/data/train-00000-of-00001.parquet")
    stored = [tuple(row[name] for name in MARKS) for row in table.to_pylist()]
    assert [row[:5] for row in stored] == [
        ("train", "alone", "below_minimum", "code", False),
        ("train", "both", "not_calibrated", "code_and_judge", False),
        ("train", "itself", "uncertain", "code_and_judge", True),
        ("train", "older", None, None, None),
        ("train", "unasked", None, "code", False),
    ]
    with (tmp_path / "openai/marks.csv").open(newline="") as handle:
        [head, *lines] = csv.reader(handle)
    assert tuple(head) == MARKS
    texts = [["" if value is None else str(value) for value in row] for row in stored]
    assert lines == texts
    rows = (tmp_path / "openai/train.jsonl").read_text().splitlines()
    assert len(rows) == len(lines)


def test_nothing_accepted_is_said(tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "data", [(trajectory("a"), "low_score")])
    with pytest.raises(ConfigError, match=r"can be exported: 1 not_accepted$"):
        export_dataset(dataset, tmp_path / "out")


@pytest.mark.parametrize("format_", ["hf", "openai"])
def test_such_a_conversation_stops_the_export_and_is_named(format_: Any, tmp_path: Path) -> None:
    rows = [(trajectory("fine"), None), (trajectory("odd", conversation()[:-1]), None)]
    dataset = write_dataset(tmp_path / "data", rows)
    with pytest.raises(ItemError, match="trajectory odd was accepted and does not end with words"):
        export_dataset(dataset, tmp_path / "out", format=format_)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_many_rows_make_several_files(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "FILE_ROWS", 2)
    monkeypatch.setattr(files, "GROUP_ROWS", 1)
    monkeypatch.setattr(stored_rows, "WINDOW_ROWS", 2)
    export_dataset(dataset, tmp_path / "out")
    names = sorted(path.name for path in (tmp_path / "out/data").iterdir())
    assert names == ["train-00000-of-00002.parquet", "train-00001-of-00002.parquet"]
    rows = load(tmp_path / "out")["train"]
    assert rows["trajectory_id"][:] == ["a1", "a2", "a3"]


def test_an_unknown_format_is_refused(dataset: Dataset, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"format must be one of hf, trl, .*, got 'csv'"):
        export_dataset(dataset, tmp_path / "out", format="csv")
