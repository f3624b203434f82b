"""Large and dirty sources: streams are read once, bad rows are counted, wrong files refused."""

import gzip
import json
import random
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from records.errors import ConfigError, ItemError, TransientError
from records.sources import stored_files
from synth.rephrasing.sources import formats, rereading
from synth.rephrasing.sources.rereading import Rereader
from synth.rephrasing.sources.rows import text_of
from synth.rephrasing.sources.sources import source_of
from synth.rephrasing.sources.tables import DataSet
from synth.rephrasing.sources.texts import BadRow, SourceText
from synth.rephrasing.writing.config import SourceConfig

TEXTS = [f"Text {n} holds é and 中, {'much ' * (n % 50)}indeed." for n in range(400)]

DIRTY = [
    (b'{"text": "good"}', None),
    (b'{"text": null}', "null_text"),
    (b'{"body": "x"}', "no_text_column"),
    (b'{"text": 7}', "text_is_no_string"),
    (b'{"text": "cut of', "not_json"),
    (b"[" * 100_000, "not_json"),
    (b"[1]", "not_an_object"),
    (b'{"text": "\xff\xfe"}', "not_utf8"),
    (rb'{"text": "half \ud83d of a pair"}', "not_utf8"),
    (b"", None),
    (b'{"text": "good again"}', None),
    *[(b'{"text": "more"}', None)] * 8,
]
"""Lines, and why each is none; the empty one is no row at all."""


def packed(data: bytes, ending: str) -> bytes:
    if ending == ".gz":  # two members, as tools that append write them
        return gzip.compress(data[:1000]) + gzip.compress(data[1000:])
    if ending == ".zst":
        codec = pa.Codec("zstd")
        frames = [codec.compress(part, asbytes=True) for part in (data[:1000], data[1000:])]
        return b"".join(bytes(frame) for frame in frames)
    return data


def lines_of(texts: list[str]) -> bytes:
    return "".join(json.dumps({"text": text}) + "\n" for text in texts).encode()


def rows_of(path: Path, **settings):
    source = source_of(SourceConfig(path=str(path), **settings))
    return source, list(source.texts())


@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
@pytest.mark.parametrize("format_", [".jsonl", ".txt", ".md"])
def test_compressed_files_hold_the_texts_of_the_plain_ones(
    tmp_path: Path, format_: str, ending: str
) -> None:
    data = lines_of(TEXTS) if format_ == ".jsonl" else "\n\n".join(TEXTS * 20).encode()
    plain, path = tmp_path / f"plain{format_}", tmp_path / f"packed{format_}{ending}"
    plain.write_bytes(data)
    path.write_bytes(packed(data, ending))
    _, wanted = rows_of(plain)
    source, found = rows_of(path)
    assert len(found) > 1
    assert [(place, row[0]) for place, row in found] == [(place, row[0]) for place, row in wanted]
    for place, row in random.Random(0).sample(found, k=len(found) // 3):
        assert source.read(place) == row


class CountingReader:
    """Rows of a file that can only be read from its beginning."""

    reach = 0

    def __init__(self, rows: int) -> None:
        self.number, self.read = rows, 0

    def begin(self, place: int) -> int:
        return 0

    def rows(self, start: int):
        for number in range(self.number):
            self.read += 1
            yield number, SourceText("x" * 1000, str(number))


def test_a_file_without_places_is_read_about_once_by_who_asks_about_in_order() -> None:
    rows = 20_000
    assert rows * 1000 > rereading.RECENT_CHARS
    reader = CountingReader(rows)
    rereader = Rereader(reader)
    rng = random.Random(0)
    asked = sorted(range(rows), key=lambda n: n + rng.uniform(0, 500))
    again = iter(range(0, rows // 2))  # a shard that is made again, far behind
    for number in asked:
        assert rereader.at(number).name == str(number)  # type: ignore[union-attr]
        if number > rows // 2 and (late := next(again, None)) is not None:
            assert rereader.at(late).name == str(late)  # type: ignore[union-attr]
    assert reader.read < 2 * rows
    assert rereader.at(rows) is None


def test_bad_rows_are_told_by_reason_and_place_and_the_others_are_read(tmp_path: Path) -> None:
    path = tmp_path / "dirty.jsonl"
    path.write_bytes(b"\n".join(line for line, _ in DIRTY))
    source, found = rows_of(path)
    reasons = [row.reason if isinstance(row, BadRow) else None for _, row in found]
    assert reasons == [reason for line, reason in DIRTY if line]
    for (_, offset), row in found:
        assert row.name == f"dirty.jsonl@{offset}"
        assert isinstance(row, BadRow) or source.read((0, offset)) == row
    bad = next(place for place, row in found if isinstance(row, BadRow))
    with pytest.raises(ItemError, match="source_changed"):
        source.read(bad)


def test_a_line_or_paragraph_without_end_is_passed_in_flat_memory(tmp_path: Path) -> None:
    endless = b"word " * (2 * formats.LONGEST_BYTES // 5)
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "' + endless + b'"}\n{"text": "next"}\n')
    (tmp_path / "b.txt").write_bytes(b"first\n\n" + endless + b"\n\nnext\n")
    tracemalloc.start()
    found = [row for _, row in source_of(SourceConfig(path=str(tmp_path))).texts()]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    told = [r.reason if isinstance(r, BadRow) else r.text for r in found]
    assert told == ["too_long", "next", "too_long", "next\n"]
    assert peak < 5 * formats.LONGEST_BYTES


def test_parquet_rows_that_hold_no_text_are_told(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    raw = pa.array([b"good", None, b"\xff", b"too"], pa.binary())
    texts = pa.Array.from_buffers(pa.utf8(), 4, raw.buffers())
    pq.write_table(pa.table({"text": texts}), path)
    _, found = rows_of(path)
    told = [r.reason if isinstance(r, BadRow) else r.text for _, r in found]
    assert told == ["good", "null_text", "not_utf8", "too"]


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_a_file_whose_rows_are_mostly_bad_is_refused_with_what_was_wanted(
    tmp_path: Path, kind: str
) -> None:
    path = tmp_path / f"t.{kind}"
    values = [None if n % 5 else "good" for n in range(5000)]
    if kind == "parquet":
        pq.write_table(pa.table({"text": values}), path)
    else:
        path.write_text("".join(json.dumps({"text": value}) + "\n" for value in values))
    seen: Counter[type] = Counter()
    rows = (type(row) for _, row in source_of(SourceConfig(path=str(path))).texts())
    with pytest.raises(ConfigError, match=r"text under 'text'.*null_text, as t\.") as raised:
        seen.update(rows)
    assert "501 of the first" in str(raised.value)
    assert seen.total() < 1000


def test_a_file_with_few_bad_rows_or_a_small_one_of_many_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "one"}\n' * 3)
    (tmp_path / "b.jsonl").write_text('{"text": "cut')
    (tmp_path / "c.jsonl").write_text('{"text": "two"}\n' * 4 + '{"text": null}\n' * 3)
    _, found = rows_of(tmp_path)
    assert sum(isinstance(row, BadRow) for _, row in found) == 4
    assert len(found) == 11


def test_a_truncated_stream_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    for ending in (".gz", ".zst"):
        path = tmp_path / f"t.jsonl{ending}"
        path.write_bytes(packed(lines_of(TEXTS), ending)[:-30])
        with pytest.raises(ConfigError, match=rf"t\.jsonl{ending} cannot be read"):
            rows_of(path)


def test_one_row_group_is_read_by_pages(tmp_path: Path) -> None:
    path = tmp_path / "one_group.parquet"
    rows = [f"{n} " * 800 for n in range(10_000)]
    pq.write_table(
        pa.table({"text": rows}),
        path,
        row_group_size=len(rows),
        use_dictionary=False,
        data_page_size=1 << 16,
    )
    assert pq.ParquetFile(path).num_row_groups == 1
    size = sum(map(len, rows))
    before = pa.total_allocated_bytes()
    most = 0
    source = source_of(SourceConfig(path=str(path)))
    for number, ((_, at), row) in enumerate(source.texts()):
        assert at == number
        if number % 1000 == 0:
            most = max(most, pa.total_allocated_bytes() - before)
            assert source.read((0, at)) == row
            most = max(most, pa.total_allocated_bytes() - before)
    assert most < size / 3


def test_names_that_say_no_format_are_passed_over() -> None:
    names = ("a.csv", "a.parquet.gz", "gz", "a.gz")
    told = {name: stored_files._format_of(name, stored_files.FORMATS) for name in names}
    assert set(told.values()) == {None}


@pytest.fixture
def web(tmp_path: Path) -> Iterator[str]:
    """The address of a server of `tmp_path`, which knows no ranges, as many do not."""
    handler = partial(Quiet, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.mark.parametrize("name", ["t.jsonl", "t.jsonl.gz", "t.txt.zst", "t.parquet"])
@pytest.mark.parametrize("kind", ["http", "memory", "file"])
def test_files_elsewhere_hold_what_they_hold_here(
    tmp_path: Path, web: str, kind: str, name: str
) -> None:
    path = tmp_path / name
    if name.endswith(".parquet"):
        pq.write_table(pa.table({"text": TEXTS}), path, row_group_size=90)
    else:
        data = lines_of(TEXTS) if "jsonl" in name else "\n\n".join(TEXTS * 20).encode()
        path.write_bytes(packed(data, path.suffix))
    memory = fsspec.filesystem("memory")
    memory.pipe(f"/corpora/{name}", path.read_bytes())
    addresses = {
        "http": f"{web}/{name}",
        "memory": f"memory://corpora/{name[:3]}*",
        "file": f"file://{tmp_path}",
    }
    try:
        _, wanted = rows_of(path)
        source = source_of(SourceConfig(path=addresses[kind]))
        found = list(source.texts())
        assert found == wanted
        for place, row in [*found[1::9], *found[::40]]:
            assert source.read(place) == row
    finally:
        memory.rm("/corpora", recursive=True)


def test_what_is_not_there_or_wants_a_package_is_told(web: str) -> None:
    with pytest.raises(ConfigError, match=r"missing\.jsonl' cannot be listed"):
        source_of(SourceConfig(path=f"{web}/missing.jsonl"))
    with pytest.raises(ConfigError, match=r"memory://nothing.* holds no \.parquet"):
        source_of(SourceConfig(path="memory://nothing/*.jsonl"))
    with pytest.raises(ConfigError, match=r"[Ii]nstall adlfs"):
        source_of(SourceConfig(path="az://container/t.jsonl"))
    with pytest.raises(ConfigError, match="Protocol not known: nobody"):
        source_of(SourceConfig(path="nobody://t.jsonl"))


def test_a_server_that_fails_later_has_the_item_tried_again(tmp_path: Path, web: str) -> None:
    (tmp_path / "t.jsonl.gz").write_bytes(gzip.compress(lines_of(TEXTS)))
    source = source_of(SourceConfig(path=f"{web}/t.jsonl.gz"))
    [*_, (place, row)] = source.texts()
    (tmp_path / "t.jsonl.gz").rename(tmp_path / "away")
    with pytest.raises(TransientError, match=r"t\.jsonl\.gz cannot be read"):
        source.read(place)
    (tmp_path / "away").rename(tmp_path / "t.jsonl.gz")
    assert source.read(place) == row


def test_a_pattern_finds_files_of_this_machine(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a.jsonl.zst", "c.txt"):
        (tmp_path / name).write_bytes(packed(lines_of([name]), Path(name).suffix))
    source = source_of(SourceConfig(path=str(tmp_path / "*.jsonl*")))
    assert [row[0] for _, row in source.texts()] == ["a.jsonl.zst", "b.jsonl"]


@pytest.mark.parametrize(
    ("told", "language"),
    [("en", "en"), ("EN-us", "en"), ("zh_Hans", "zh"), ("English", "fr"), ("", "fr"), (None, "fr")],
)
def test_the_language_of_a_row_is_a_code_or_that_of_the_source(
    told: str | None, language: str
) -> None:
    config = SourceConfig(path="a.jsonl", language="fr")
    row = text_of({"text": "Salt melts ice.", "language": told}, config, "a")
    assert isinstance(row, SourceText)
    assert row.language == language


def test_a_stream_that_breaks_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stream:
        column_names = ("text",)
        broken = False

        def __iter__(self) -> Iterator[dict[str, str]]:
            for number in range(6):
                if self.broken and number == 3:
                    raise OSError("connection reset")
                yield {"text": f"row {number}"}

    stream = Stream()
    monkeypatch.setattr(DataSet, "_load", lambda self: stream)
    source = DataSet(SourceConfig(path="owner/name", format="datasets"))
    found = list(source.texts())
    stream.broken = True
    with pytest.raises(TransientError, match="connection reset"):
        source.read(found[4][0])
    stream.broken = False
    assert source.read(found[4][0]) == found[4][1]


@pytest.mark.slow
def test_a_data_set_is_streamed_by_its_name_of_config(tmp_path: Path) -> None:
    pytest.importorskip("datasets")
    for language in ("en", "fr"):
        (tmp_path / language).mkdir()
        (tmp_path / language / "train.jsonl").write_bytes(
            lines_of([f"{language} {n}" for n in range(50)])
        )
    card = "".join(
        f"- config_name: {language}\n  data_files: {language}/train.jsonl\n"
        for language in ("en", "fr")
    )
    (tmp_path / "README.md").write_text(f"---\nconfigs:\n{card}---\n")
    config = SourceConfig(path=str(tmp_path), format="datasets", config="fr")
    source = source_of(config)
    found = list(source.texts())
    assert [row[0] for _, row in found] == [f"fr {n}" for n in range(50)]
    for place, row in [*found[::7], *reversed(found[::11])]:
        assert source.read(place) == row
    with pytest.raises(ConfigError, match="cannot be read"):
        list(source_of(config.model_copy(update={"config": "de"})).texts())


def test_a_setting_that_is_younger_changes_no_id() -> None:
    source = SourceConfig(path="a.jsonl")
    assert "config" not in source.identity()
    assert source.model_copy(update={"config": "en"}).identity()["config"] == "en"
