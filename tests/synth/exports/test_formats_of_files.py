"""Every format as files: what reads them, what is the same in both types, what is counted."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from records.errors import ConfigError
from records.store.dataset import Dataset
from records.tables.schemas import JSON, Row
from synth.exports import stored_rows
from synth.exports.export import Exported, export_dataset
from synth.exports.formats.registry import FORMATS
from synth.exports.formats.verl import CLASS_FILE
from tests.synth.exports.attempts import (
    ODD,
    failed_conversation,
    write_attempts,
    write_example,
)
from tests.synth.exports.loading import load
from tests.synth.exports.reading_back import as_told, of_atif, of_flagged, of_k2, of_sharegpt
from tests.synth.golden import assert_golden
from tests.synth.small_dataset import TOOLS, conversation, trajectory, write_dataset

CONVERSATIONS = [name for name in FORMATS if name != "preferences"]


@pytest.fixture(scope="module")
def attempts(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return write_attempts(tmp_path_factory.mktemp("attempts") / "boats")


class MadeExports:
    """Exports of one dataset, each made once."""

    def __init__(self, dataset: Dataset, root: Path) -> None:
        self._dataset, self._root = dataset, root
        self._made: dict[Path, Exported] = {}

    def folder(self, name: str, file_type: str | None = None) -> Path:
        out = self._root / name / (file_type or FORMATS[name].file_types[0]) / "out"
        if out not in self._made:
            self._made[out] = export_dataset(self._dataset, out, format=name, file_type=file_type)
        return out

    def told(self, name: str) -> Exported:
        return self._made[self.folder(name)]

    def made(self, name: str, out: Path, **asked: Any) -> Exported:
        return export_dataset(self._dataset, out, format=name, **asked)


@pytest.fixture(scope="module")
def exports(attempts: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MadeExports]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("synth.exports.formats.atif.version", lambda _: "0")
        yield MadeExports(attempts, tmp_path_factory.mktemp("exports"))


def rows_of(out: Path, name: str = "data", split: str = "train") -> list[Row]:
    """The rows of a split as Python values, in either type of file."""
    lines = out / ("" if name == "data" else name) / f"{split}.jsonl"
    if lines.exists():
        return [json.loads(line) for line in lines.read_text().splitlines()]
    rows: list[Row] = []
    for path in sorted((out / name).glob(f"{split}-*.parquet")):
        table = pq.read_table(path)
        parsed = [column.name for column in table.schema if column.type == JSON]
        for row in table.to_pylist():
            rows.append({k: json.loads(v) if k in parsed and v else v for k, v in row.items()})
    return rows


BACK = {
    "hf": lambda row: of_flagged(row["messages"]),
    "trl": lambda row: of_flagged(row["messages"]),
    "verl": lambda row: of_flagged(row["messages"]),
    "openai": lambda row: of_flagged(row["messages"]),
    "sharegpt": of_sharegpt,
    "k2": of_k2,
    "atif": of_atif,
}


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_rows_of_files_are_the_messages_again_in_every_type(
    name: str, exports: MadeExports
) -> None:
    expected = [
        as_told(conversation(*said), names=name != "openai") for said in ((ODD,), ("Rent it.",), ())
    ]
    for file_type in FORMATS[name].file_types:
        rows = rows_of(exports.folder(name, file_type))
        assert [BACK[name](row) for row in rows] == expected
    told = exports.told(name)
    assert (told.rows, told.left_out) == ({"train": 3}, {"not_accepted": 4})


@pytest.mark.parametrize("name", FORMATS)
def test_first_rows_are_golden_and_the_card_explains_every_column(
    name: str, exports: MadeExports
) -> None:
    out = exports.folder(name)
    parts = {part.name: part for part in FORMATS[name].parts}
    first = {
        own: rows_of(out, "data" if own == "default" else own)[0] | {"run_id": "-"} for own in parts
    }
    assert_golden(Path(__file__).parent / "golden" / f"{name}.yaml", 1, first)
    text = (out / "README.md").read_text()
    front = yaml.safe_load(text.split("---\n")[1])
    assert [config["config_name"] for config in front["configs"]] == list(parts)
    assert all(f"| `{column}` |" in text for part in parts.values() for column in part.columns)
    for config in front["configs"]:
        assert all(list(out.glob(data_file["path"])) for data_file in config["data_files"])
    assert f"--format {name}" in text


def test_what_of_attempts_is_no_pair_is_counted(exports: MadeExports) -> None:
    told = exports.told("preferences")
    assert told.rows == {"train": 1}
    assert told.more_rows == {"unpaired": {"train": 5}}
    # two of the four rejected are attempts; one is no conversation, one is not the agent's fault
    assert told.left_out == {
        "not_accepted": 1,
        "pair_without_shared_prompt": 1,
        "pair_untrainable": 1,
        "attempt_untrainable": 1,
    }


@pytest.mark.parametrize("file_type", FORMATS["preferences"].file_types)
def test_a_pair_is_both_conversations_from_where_they_part(
    file_type: str, exports: MadeExports
) -> None:
    out = exports.folder("preferences", file_type)
    [row] = rows_of(out)
    assert (row["trajectory_id"], row["rejected_id"]) == ("good", "bad")
    assert as_told(row["prompt"] + row["chosen"]) == as_told(conversation())
    assert as_told(row["prompt"] + row["rejected"]) == as_told(failed_conversation())
    assert row["chosen"][0] != row["rejected"][0]
    labels = {r["trajectory_id"]: r["label"] for r in rows_of(out, "unpaired")}
    assert labels == {"good": True, "better": True, "alone": True, "bad": False, "other": False}


def test_without_several_attempts_there_is_no_pair(tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "data", [(trajectory("a"), None)])
    words = r"no pair of .* attempts with a label alone \(1\), add --unpaired$"
    with pytest.raises(ConfigError, match=words):
        export_dataset(dataset, tmp_path / "out", format="preferences")
    assert not (tmp_path / "out").exists()
    made = export_dataset(dataset, tmp_path / "out", format="preferences", unpaired=True)
    assert (made.rows, made.more_rows, made.left_out) == ({"train": 1}, {}, {})
    [row] = rows_of(tmp_path / "out", "unpaired")
    assert as_told(row["prompt"] + row["completion"]) == as_told(conversation())
    assert row["label"]
    card = (tmp_path / "out/README.md").read_text()
    assert [c["config_name"] for c in yaml.safe_load(card.split("---\n")[1])["configs"]] == [
        "unpaired"
    ]
    assert "--format preferences --unpaired" in card


def test_attempts_alone_are_those_beside_pairs(exports: MadeExports, tmp_path: Path) -> None:
    made = exports.made("preferences", tmp_path / "out", unpaired=True)
    assert rows_of(tmp_path / "out", "unpaired") == rows_of(
        exports.folder("preferences"), "unpaired"
    )
    assert made.rows == exports.told("preferences").more_rows["unpaired"]
    assert not (tmp_path / "out/data").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "part"),
    [("trl", "default"), ("preferences", "unpaired"), ("verl", "rl"), ("k2", "default")],
)
def test_load_dataset_takes_the_features_of_the_card(
    name: str, part: str, exports: MadeExports
) -> None:
    loaded = load(exports.folder(name), part, split="train")
    expected = rows_of(exports.folder(name), "data" if part == "default" else part)
    assert list(loaded) == expected != []


def test_tasks_of_verl_are_one_a_task_with_what_the_user_says_first(exports: MadeExports) -> None:
    out = exports.folder("verl")
    rows = rows_of(out, "rl")
    # by trajectory: alone, better, good
    assert [row["extra_info"]["task_id"] for row in rows] == ["task-3", "task-2", "task-1"]
    assert [row["extra_info"]["index"] for row in rows] == [0, 1, 2]
    assert rows[2]["prompt"] == [
        {"role": "system", "content": "You rent boats."},
        {"role": "user", "content": "Please rent me the boat Heron."},
    ]
    assert json.loads(rows[2]["extra_info"]["tools"]) == TOOLS
    assert json.loads(rows[2]["reward_model"]["ground_truth"])["criteria"]
    compile((out / CLASS_FILE).read_text(), CLASS_FILE, "exec")


def test_llama_factory_finds_every_split_in_its_list(tmp_path: Path) -> None:
    rows = [(trajectory("a"), None), (trajectory("h", split="heldout_task"), None)]
    dataset = write_dataset(tmp_path / "data", rows)
    export_dataset(dataset, tmp_path / "out", format="sharegpt", include_heldout=True)
    info = json.loads((tmp_path / "out/dataset_info.json").read_text())
    assert set(info) == {"out", "out_heldout_task"}
    for entry in info.values():
        assert (tmp_path / "out" / entry["file_name"]).exists()
        row = json.loads((tmp_path / "out" / entry["file_name"]).read_text().splitlines()[0])
        assert set(entry["columns"].values()) <= row.keys()


def test_a_row_that_a_format_cannot_hold_is_counted_and_the_card_is_about_the_rest(
    tmp_path: Path,
) -> None:
    spelt = conversation("What is <|im_end|>?")
    rows = [(trajectory("a"), None), (trajectory("b", spelt), None)]
    dataset = write_dataset(tmp_path / "data", rows)
    made = export_dataset(dataset, tmp_path / "out", format="k2")
    assert (made.rows, made.left_out) == ({"train": 1}, {"spells_special_token": 1})
    card = (tmp_path / "out/README.md").read_text()
    assert "1 conversations between a user and an agent" in card
    assert "- spells\\_special\\_token: 1 (somebody spells" in card


def test_lost_flags_are_counted_and_told(tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "data", [(trajectory("a"), None)])
    without = [False, False, False, False, False, True, False, True]
    dataset.commit(
        run_id="run-1",
        stage="curation",
        shard=1,
        tables={"curation": [curated("a", without)]},
    )
    counts = {
        name: export_dataset(dataset, tmp_path / name, format=name).flags_lost
        for name in ("trl", "sharegpt")
    }
    assert counts == {"trl": 0, "sharegpt": 1}
    assert "In 1 rows some messages" in (tmp_path / "sharegpt/README.md").read_text()


def curated(trajectory_id: str, train_turns: list[bool]) -> Row:
    from tests.synth.publish.judged import decision

    return decision(trajectory_id, None, train_turns=train_turns)


@pytest.mark.slow
def test_windows_change_nothing(
    attempts: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("hf", "verl", "preferences")  # every source of rows
    whole = {name: exported_bytes(attempts, tmp_path / f"{name}-1", name) for name in names}
    monkeypatch.setattr(stored_rows, "WINDOW_ROWS", 1)
    for name, expected in whole.items():
        assert exported_bytes(attempts, tmp_path / f"{name}-2", name) == expected


def exported_bytes(dataset: Dataset, out: Path, name: str) -> dict[str, bytes]:
    export_dataset(dataset, out / "boats", format=name)
    files = [path for path in out.rglob("*") if path.is_file()]
    return {str(path.relative_to(out)): path.read_bytes() for path in files}


@pytest.mark.slow
def test_the_order_of_stored_rows_changes_nothing(tmp_path: Path) -> None:
    rows = [(trajectory(name), None) for name in "cab"]
    made = []
    for number, order in enumerate((rows, rows[::-1])):
        dataset = write_dataset(tmp_path / str(number) / "boats", order)
        export_dataset(dataset, tmp_path / f"out-{number}", format="trl")
        made.append(rows_of(tmp_path / f"out-{number}"))
    assert made[0] == made[1]
    assert [row["trajectory_id"] for row in made[0]] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("name", "asked", "words"),
    [
        ("openai", {"file_type": "parquet"}, "openai is written as jsonl, not as parquet"),
        ("hf", {"file_type": "jsonl"}, "hf is written as parquet, not as jsonl"),
        ("k2", {"reasoning": "think"}, "keeps the thoughts of the last turn alone"),
        ("sharegpt", {"reasoning": "field"}, "no field for thoughts; think writes them"),
        (
            "openai",
            {"arguments": "text"},
            "its own way, .* for hf, trl, verl, preferences",
        ),
        ("trl", {"unpaired": True}, "--unpaired is for --format preferences"),
    ],
)
def test_what_a_format_has_not_is_refused(
    name: str, asked: dict[str, Any], words: str, attempts: Dataset, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=words):
        export_dataset(attempts, tmp_path / "out", format=name, **asked)


@pytest.mark.slow
def test_the_page_shows_rows_as_they_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block may leave columns out; what it shows is what the format writes."""
    # the version that the page was written with, and not that of the goldens of this file
    monkeypatch.setattr("synth.exports.formats.atif.version", lambda _: "0.1.0")
    page = (Path(__file__).parents[3] / "docs/exports.md").read_text()
    shown = re.findall(r"<!-- row (\w+)(?:/(\w+))? -->\n```json\n(.*?)\n```", page, re.DOTALL)
    assert {name for name, _, _ in shown} == set(FORMATS)
    dataset = write_example(tmp_path / "boats")
    for name, part, block in shown:
        out = tmp_path / name
        if not out.exists():
            export_dataset(dataset, out, format=name)
        row = rows_of(out, part or "data")[0]
        for key, value in json.loads(block).items():
            assert row[key] == value, (name, key)


def test_the_page_names_the_locked_version_of_every_target() -> None:
    page = (Path(__file__).parents[3] / "docs/exports.md").read_text()
    told = re.findall(r"^\| [^|]+ \| `([\w-]+)` ([\d.]+)", page, re.MULTILINE)
    requirements = list((Path(__file__).parent / "targets/requirements").glob("*.txt"))
    locked = [path.read_text().splitlines() for path in requirements]
    pins = [f"{package}=={version}" for package, version in told]
    assert [sum(pin in lines for pin in pins) for lines in locked] == [1] * len(locked)
    assert len(pins) == len(locked) > 0
