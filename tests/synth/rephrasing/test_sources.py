"""Sources: every text once, in order, and the same text again by its place."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from records.errors import ConfigError
from synth.rephrasing.sources.formats import SEGMENT_BYTES
from synth.rephrasing.sources.sources import source_of
from synth.rephrasing.sources.texts import SourceText, TextPosition, TextSource
from synth.rephrasing.writing.config import SourceConfig

TEXTS = [f"Text {n} holds \u00e9 and \u4e2d, {'much ' * n}indeed." for n in range(700)]


def texts_in(source: TextSource) -> list[tuple[TextPosition, SourceText]]:
    """Of a source without a bad row."""
    found = list(source.texts())
    good = [(place, row) for place, row in found if isinstance(row, SourceText)]
    assert len(good) == len(found)
    return good


def parquet(folder: Path) -> Path:
    path = folder / "t.parquet"
    table = pa.table({"body": TEXTS, "language": ["en"] * len(TEXTS), "n": range(len(TEXTS))})
    pq.write_table(table, path, row_group_size=150)
    return path


def jsonl(folder: Path) -> Path:
    path = folder / "t.jsonl"
    lines = [json.dumps({"body": text, "language": "en"}, ensure_ascii=False) for text in TEXTS]
    path.write_text("\n\n".join(lines), encoding="utf-8")
    return path


def saved(folder: Path) -> Path:
    datasets = pytest.importorskip("datasets")
    rows = datasets.Dataset.from_dict({"body": TEXTS, "language": ["en"] * len(TEXTS)})
    rows.save_to_disk(folder / "saved")
    return folder / "saved"


def saved_splits(folder: Path) -> Path:
    datasets = pytest.importorskip("datasets")
    one = datasets.load_from_disk(str(saved(folder)))
    other = datasets.Dataset.from_dict({"body": ["of the other split"]})
    datasets.DatasetDict({"test": other, "train": one}).save_to_disk(folder / "splits")
    return folder / "splits"


@pytest.mark.parametrize("kind", [parquet, jsonl, saved, saved_splits])
def test_rows_come_in_order_and_again_by_their_place(tmp_path: Path, kind) -> None:
    config = SourceConfig(path=str(kind(tmp_path)), text="body")
    found = texts_in(source_of(config))
    assert [text.text for _, text in found] == TEXTS
    assert {text.language for _, text in found} == {"en"}
    later = source_of(config)
    for place, text in [*found[::97], *reversed(found[::61])]:
        assert later.read(place) == text


def test_a_split_that_is_not_there_is_refused(tmp_path: Path) -> None:
    path = str(saved_splits(tmp_path))
    [(_, text)] = texts_in(source_of(SourceConfig(path=path, text="body", split="test")))
    assert text.text == "of the other split"
    with pytest.raises(ConfigError, match="cannot be read: 'validation'"):
        list(source_of(SourceConfig(path=path, text="body", split="validation")).texts())


def test_plain_text_is_read_in_segments_that_end_with_a_paragraph(tmp_path: Path) -> None:
    words = "A \u00e9 word. " * 40
    paragraphs = [f"Paragraph {n}. {words}" for n in range(900)]
    whole = "\n\n".join(paragraphs)
    (tmp_path / "long.txt").write_text(whole, encoding="utf-8")
    source = source_of(SourceConfig(path=str(tmp_path), language="fr"))
    found = texts_in(source)
    assert "".join(text.text for _, text in found) == whole
    sizes = [len(text.text.encode()) for _, text in found]
    assert len(sizes) > 5
    assert all(SEGMENT_BYTES <= size < SEGMENT_BYTES + 1000 for size in sizes[:-1])
    assert all(text.text.endswith("\n\n") for _, text in found[:-1])
    assert source.read(found[2][0]) == found[2][1]
    assert found[0][1].language == "fr"


def test_a_folder_is_all_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "z.md").write_text("# Z")
    (tmp_path / "a.txt").write_text("A")
    (tmp_path / "c.jsonl").write_text('{"text": "C"}\n')
    (tmp_path / "ignored.csv").write_text("no")
    source = source_of(SourceConfig(path=str(tmp_path)))
    assert [text for _, text in source.texts()] == [
        SourceText("A", "a.txt"),
        SourceText("# Z", "z.md"),
        SourceText("C", "c.jsonl@0"),
    ]


@pytest.mark.parametrize("name", [pytest.param("cpython", marks=pytest.mark.slow), "maths"])
def test_built_in_sources_are_real_texts(name: str) -> None:
    source = source_of(SourceConfig(path=name))
    found = texts_in(source)
    assert len(found) >= 200
    assert all(text.text.strip() for _, text in found)
    assert len({text.name for _, text in found}) == len(found)
    place, text = found[-1]
    assert source_of(SourceConfig(path=name)).read(place) == text


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"body": "x"}', "there is no 'text' .sources.text., only body"),
        ("[1]", "a JSON object is wanted"),
        ("{", "no line of JSON"),
    ],
)
def test_a_source_of_which_no_row_holds_a_text_is_refused(
    tmp_path: Path, content: str, words: str
) -> None:
    (tmp_path / "t.jsonl").write_text(content)
    with pytest.raises(ConfigError, match=words):
        list(source_of(SourceConfig(path=str(tmp_path / "t.jsonl"))).texts())


def test_what_is_no_source_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"holds no \.parquet, \.jsonl, \.txt, \.md file"):
        source_of(SourceConfig(path=str(tmp_path)))
    with pytest.raises(ConfigError, match='wants format = "datasets"'):
        source_of(SourceConfig(path="owner/name"))
    for address in ("https://evil.test/x", "../up", "/etc/passwd", "a/b/c"):
        with pytest.raises(ConfigError, match="neither a folder nor a name on the Hugging Face"):
            source_of(SourceConfig(path=address, format="datasets"))
