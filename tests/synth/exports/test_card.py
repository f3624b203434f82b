"""The card tells what was exported and how it was made, and foreign text in it is only text."""

import json
import re
from datetime import timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from markdown_it import MarkdownIt

from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.exports.export import export_dataset
from synth.exports.formats.columns import HF_COLUMNS, MEANINGS
from tests.records.rows import row
from tests.synth.exports.attempts import write_attempts
from tests.synth.exports.loading import card_of, load
from tests.synth.publish.judged import decision
from tests.synth.small_dataset import START, trajectory, write_dataset

HOSTILE = (
    "</script><img src=x onerror=alert(1)> [here](javascript:alert(1)) | cell |\n---\n# heading\n"
    "- license: mit\n```\n\x1b[31mred \u202eback\u2066 {{ 7 * 7 }} ![x](http://evil.example/x.png)"
)


def test_the_card_says_what_it_is_and_how_it_was_made(dataset: Dataset, tmp_path: Path) -> None:
    export_dataset(dataset, tmp_path / "out", include_heldout=True)
    front, body = card_of(tmp_path / "out")
    assert front["license"] == ["apache-2.0"]
    assert front["size_categories"] == ["n<1K"]
    for data_file in front["configs"][0]["data_files"]:
        assert list((tmp_path / "out").glob(data_file["path"]))
    assert "offline model" in body
    assert "| rollouts | 8 | 6 | 0 | 1 | 1 | infra\\_error 1 |" in body
    assert "| agent | offline\\-model | 5 |" in body
    assert "| `heldout_task` | 1 |" in body
    assert "- not\\_accepted: 1 (rejected" in body
    names = pq.read_schema(tmp_path / "out/data/train-00000-of-00001.parquet").names
    assert all(f"| `{name}` |" in body for name in names)
    metadata = json.loads((tmp_path / "out" / "metadata.json").read_text())
    assert metadata["rows"] == {"train": 3, "heldout_task": 1, "heldout_domain": 1}


def test_another_model_is_no_offline_model(tmp_path: Path) -> None:
    models = {"agent": "big", "user": "big"}
    row = trajectory("a", models=models)
    dataset = write_dataset(tmp_path / "data", [(row, None)], model="big")
    export_dataset(dataset, tmp_path / "out")
    assert "offline model" not in card_of(tmp_path / "out")[1]


def test_settings_are_told_without_addresses_keys_and_paths(
    dataset: Dataset, tmp_path: Path
) -> None:
    dataset = write_dataset(tmp_path / "secret-place" / "boats", [(trajectory("a"), None)])
    role = {
        "base_url": "https://intern.example/v1",
        "api_key_env": "MY_KEY",
        "extra_body": {"token": "sk-1"},
        "models": [{"name": "big", "weight": 1.0}],
        "temperature": 0.7,
        "max_tokens": 512,
        "license": "no training",
    }
    config = {
        "seed": 3,
        "domains": ["all", "/home/someone/mine.yaml"],
        "servers": [],
        "roles": {"agent": role},
    }
    started: Row = dict.fromkeys(
        ("command", "status", "detail", "cost_usd", "happened_at", "versions")
    )
    started |= {"invocation_id": "new", "event": "started", "config": config, "host": "myhost"}
    started["kind"] = "run"
    dataset.commit(run_id="run-1", stage="run-started", shard=9, tables={"runs": [started]})
    export_dataset(dataset, tmp_path / "out")
    names = ("README.md", "metadata.json", "run_config.json")
    written = "".join((tmp_path / "out" / name).read_text() for name in names)
    for hidden in ("intern.example", "MY_KEY", "sk-1", "someone", "secret-place", "myhost"):
        assert hidden not in written
    assert "| agent | 0.7 | - | 512 | no training |" in written
    settings = json.loads((tmp_path / "out" / "run_config.json").read_text())["run-1"]
    assert settings["domains"] == ["all", "mine.yaml"]


def test_hostile_names_are_only_text_in_the_card(tmp_path: Path) -> None:
    rows = [(trajectory("a", models={"agent": HOSTILE, "user": "x"}), None)]
    dataset = write_dataset(
        tmp_path / "boats ![x](y)\n--- {{ 1 }}", rows, license_=HOSTILE, domain=HOSTILE
    )
    made = export_dataset(dataset, tmp_path / "out")
    assert made.rows == {"train": 1}
    front, body = card_of(tmp_path / "out")
    assert front["pretty_name"] == "boats ![x](y) --- {{ 1 }}"
    assert front["license"] == ["apache-2.0", "other"]
    html = MarkdownIt("commonmark").enable("table").render(body)
    tags = set(re.findall(r"<(\w+)", html))
    assert tags == {"h1", "h2", "p", "pre", "code", "table", "thead", "tbody", "tr", "th", "td"} | {
        "ul",
        "li",
        "blockquote",
        "strong",
    }
    assert html.count("<h1") == 1
    assert html.count("<pre") == 2
    assert "{{ 7 * 7 }}" in html
    assert not {"\x1b", "\u202e", "\u2066"} & set(body)
    rows = load(tmp_path / "out")["train"]
    assert rows[0]["models"]["agent"] == HOSTILE
    assert rows[0]["domain"] == HOSTILE


@pytest.mark.slow
def test_the_card_tells_load_dataset_the_same_features_as_the_files(
    dataset: Dataset, tmp_path: Path
) -> None:
    export_dataset(dataset, tmp_path / "out")
    told = load(tmp_path / "out")["train"].features
    (tmp_path / "out" / "README.md").unlink()
    read = load(tmp_path / "out", cache="other")["train"].features
    assert told == read


def test_every_column_has_its_meaning() -> None:
    assert MEANINGS.keys() == HF_COLUMNS.keys()


def write_leaking(root: Path, files: list[str]) -> Dataset:
    """Two trajectories; a later run with these files of evaluations finds one in `bench.jsonl`."""
    dataset = write_dataset(root, [(trajectory("a"), None), (trajectory("leak"), None)])
    settings = {"files": files, "words": 9, "near": 0.25, "near_tools": 0.8, "cosine": 0.6}
    started = row(
        "runs",
        invocation_id="second",
        event="started",
        kind="grade",
        happened_at=START + timedelta(days=1),
        config={"seed": 7, "curation": {"near": 0.7, "decontamination": settings}, "roles": {}},
    )
    found = {"file": "bench.jsonl", "item": 3, "text": "t", "evaluation_text": "t", "place": 0}
    leak = row(
        "contaminations",
        **found,
        curation_id="curation-9",
        trajectory_id="leak",
        method="ngrams",
        part="brief",
        score=12.0,
        split="train",
    )
    decisions = [
        decision("a", None, curation_id="curation-9"),
        decision("leak", "in_evaluation" if files else None, curation_id="curation-9"),
    ]
    tables = {"runs": [started], "curation": decisions, "contaminations": [leak] if files else []}
    dataset.commit(run_id="grade-1", stage="curation", shard=0, tables=tables)
    return dataset


def test_the_card_tells_against_what_the_newest_curation_compared_and_what_it_found(
    tmp_path: Path,
) -> None:
    files = ["/home/someone/evals/bench.jsonl", "s3://bucket/others/*.parquet"]
    export_dataset(write_leaking(tmp_path / "data", files), tmp_path / "out")
    body = card_of(tmp_path / "out")[1]
    assert "Of 2 trajectories that the run grade\\-1 decided on, 1 share something" in body
    assert "Compared with: bench\\.jsonl, \\*\\.parquet; by runs of 9 words, 3\\-grams" in body
    assert "embedder" not in body, "it was not asked"
    assert "| bench\\.jsonl | ngrams | 1 |" in body
    assert "compared with no evaluation" not in body
    settings = json.loads((tmp_path / "out/run_config.json").read_text())["grade-1"]
    assert settings["curation"]["decontamination"]["files"] == ["bench.jsonl", "*.parquet"]
    assert (settings["curation"]["near"], settings["kind"]) == (0.7, "grade")
    for path in (tmp_path / "out").glob("*.*"):
        assert "someone" not in path.read_text()
        assert "bucket" not in path.read_text()


def test_the_card_says_where_nothing_was_compared(tmp_path: Path) -> None:
    export_dataset(write_leaking(tmp_path / "data", []), tmp_path / "out")
    body = card_of(tmp_path / "out")[1]
    assert "2 trajectories that the run grade\\-1 decided on were compared with no" in body


def test_the_card_tells_imported_rows_apart(tmp_path: Path) -> None:
    rows = [(trajectory("a"), None), (trajectory("b", executed_by=["elsewhere"]), None)]
    dataset = write_dataset(tmp_path / "data", rows)
    origin = {"format": "toucan", "path": "/home/someone/t.parquet", "place": "row 1"}
    lacks = ["rubric", "initial_state"]
    imported = row("imports", trajectory_id="b", license="CC-BY-4.0", lacks=lacks, **origin)
    dataset.commit(run_id="imports", stage="import", shard=0, tables={"imports": [imported]})
    export_dataset(dataset, tmp_path / "out")
    front, body = card_of(tmp_path / "out")
    assert front["license"] == ["apache-2.0", "cc-by-4.0"]
    assert front["source_datasets"] == ["original", "extended"]
    assert "\n1 were made elsewhere and imported" in body
    assert "| toucan | CC\\-BY\\-4\\.0 | 1 | initial\\_state, rubric |" in body
    assert "someone" not in body
    assert "elsewhere" in MEANINGS["executed_by"]


def test_the_card_of_preferences_counts_the_failed_attempts_in_its_files(tmp_path: Path) -> None:
    dataset = write_attempts(tmp_path / "data")
    export_dataset(dataset, tmp_path / "out", format="preferences")
    body = card_of(tmp_path / "out")[1]
    assert "\n5 conversations between a user and an agent" in body
    assert "3 were checked against their task's rubric and accepted; 2 are attempts that" in body
    assert "Each was checked" not in body


def test_the_card_names_the_languages_of_the_users(tmp_path: Path) -> None:
    rows = [(trajectory("a", persona_id="pole"), None), (trajectory("b"), None)]
    dataset = write_dataset(tmp_path / "data", rows)
    pole = row("personas", persona_id="pole", language="Polish", split="train")
    dataset.commit(run_id="run-2", stage="personas", shard=0, tables={"personas": [pole]})
    export_dataset(dataset, tmp_path / "out")
    front, body = card_of(tmp_path / "out")
    assert "Polish (1)" in body
    assert "language" not in front
