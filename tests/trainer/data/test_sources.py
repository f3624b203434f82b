"""Rows from wherever people keep them: compressed, elsewhere, or as a data set of the hub."""

import builtins
import gzip
import json
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pytest
from datasets import Dataset as HubDataset

from records.errors import ConfigError
from trainer.data.conversations import TrainingConversation
from trainer.data.sources import CorpusConfig, Sample, samples_of

CALL = {"function": {"name": "look", "arguments": {"at": "door"}}}
ROWS: list[dict[str, Any]] = [
    {
        "messages": [
            {"role": "user", "content": f"Is {n} open?"},
            {"role": "assistant", "content": "", "tool_calls": [CALL]},
        ]
    }
    for n in range(5)
]
LINES = "".join(json.dumps(row) + "\n" for row in ROWS).encode()


def read(path: str, **other: Any) -> list[Sample]:
    return list(samples_of(CorpusConfig(path=path, **other), "sft"))


def bodies(path: str, **other: Any) -> list[TrainingConversation | str]:
    return [sample.body for sample in read(path, **other)]


@pytest.fixture
def plain(tmp_path: Path) -> list[TrainingConversation | str]:
    (tmp_path / "plain.jsonl").write_bytes(LINES)
    return bodies(str(tmp_path / "plain.jsonl"))


def test_compressed_and_remote_files_hold_the_same_rows(
    tmp_path: Path, plain: list[TrainingConversation | str]
) -> None:
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(LINES))
    with pa.CompressedOutputStream(str(tmp_path / "b.jsonl.zst"), "zstd") as out:
        out.write(LINES)
    with fsspec.open("memory://rows/c.jsonl", "wb") as out:
        out.write(LINES)  # type: ignore[union-attr]
    for path in (
        str(tmp_path / "a.jsonl.gz"),
        str(tmp_path / "b.jsonl.zst"),
        str(tmp_path / "*.zst"),
        "memory://rows/c.jsonl",
        "memory://rows",
    ):
        assert bodies(path) == plain
    (tmp_path / "text.txt.gz").write_bytes(gzip.compress("é".encode()))
    assert bodies(str(tmp_path / "text.txt.gz")) == ["é"]
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(LINES)[:-9])
    with pytest.raises(ConfigError, match=r"cut.jsonl.gz cannot be read"):
        bodies(str(tmp_path / "cut.jsonl.gz"))


def test_what_tells_of_rows_is_no_row(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("Rows about doors.")
    with pytest.raises(ConfigError, match="nothing but Markdown"):
        read(str(tmp_path))
    (tmp_path / "a.jsonl").write_bytes(LINES)
    assert len(read(str(tmp_path))) == len(ROWS)


def test_a_data_set_of_the_hub_is_streamed(
    tmp_path: Path, plain: list[TrainingConversation | str]
) -> None:
    """A folder is a data set, too, so that nothing needs the network."""
    folder = tmp_path / "owner" / "name"
    for config, lines in (("en", LINES), ("de", LINES[: LINES.index(b"\n") + 1])):
        for split in ("train", "test"):
            (folder / config).mkdir(parents=True, exist_ok=True)
            (folder / config / f"{split}.jsonl").write_bytes(lines if split == "train" else LINES)
    configs = [{"config_name": c, "data_dir": c} for c in ("en", "de")]
    (folder / "README.md").write_text(f"---\nconfigs: {json.dumps(configs)}\n---\n")
    path = f"hf://{folder}"
    samples = read(path, config="en")
    assert [sample.body for sample in samples] == plain
    assert [sample.sample_id for sample in samples] == [f"name:{n}" for n in range(5)]
    assert bodies(path, config="de") == plain[:1]
    assert bodies(path, config="de", split="test") == plain
    with pytest.raises(ConfigError, match=r"data.sources.path: the data set .* cannot be read"):
        read(path, config="fr")


def test_a_saved_data_set_is_read_by_its_split(
    tmp_path: Path, plain: list[TrainingConversation | str]
) -> None:
    HubDataset.from_list(ROWS).save_to_disk(tmp_path / "saved")
    assert bodies(str(tmp_path / "saved")) == plain


def test_rows_of_a_data_set_that_cannot_be_understood_are_named(tmp_path: Path) -> None:
    HubDataset.from_list([{"question": "why"}]).save_to_disk(tmp_path / "saved")
    with pytest.raises(ConfigError, match=r"saved, row 0: has none of the columns"):
        read(str(tmp_path / "saved"))


def test_what_is_no_data_set_has_no_splits(tmp_path: Path) -> None:
    (tmp_path / "plain.jsonl").write_bytes(LINES)
    for other in ({"config": "en"}, {"split": "test"}):
        with pytest.raises(ConfigError, match="leave out config and split"):
            read(str(tmp_path / "plain.jsonl"), **other)


def test_without_the_package_it_is_told_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = builtins.__import__

    def without(name: str, *others: Any) -> Any:
        if name == "datasets":
            raise ImportError(name)
        return plain(name, *others)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ConfigError, match=r"package `datasets` \(the extra `export`\)"):
        read(f"hf://{tmp_path}")
