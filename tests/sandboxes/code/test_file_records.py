"""What comes out of a sandbox that read a stranger's files: bounded, checked, cheap to read."""

import asyncio
import itertools
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from records.errors import ConfigError
from sandboxes.code.file_records import FileBounds, FilePiece, RecordReader
from sandboxes.code.projects import MAX_DEPTH, MAX_NAME, MAX_PATH
from sandboxes.code.reading import files_of_sdist
from sandboxes.core.programs import last_words
from tests.sandboxes.code.code_cases import project
from tests.sandboxes.code.hostile_archives import BOMBS, honest_archive, packed_tar, written

BOUNDS = FileBounds(files=3, file_bytes=10, total_bytes=20)
END = bytes(8)


def record(path: str | bytes, data: bytes = b"") -> bytes:
    raw = path if isinstance(path, bytes) else path.encode()
    return len(raw).to_bytes(4, "big") + len(data).to_bytes(4, "big") + raw + data


def pieces(*records: bytes, bounds: FileBounds = BOUNDS) -> list[FilePiece]:
    reader = RecordReader(bounds)
    found = [piece for data in records for piece in reader.feed(data)]
    assert reader.complete == (b"".join(records)[-8:] == END)
    return found


def test_records_come_whole_however_they_are_cut() -> None:
    stream = record("a/b.py", b"12345") + record("a/b.py", b"6") + record("c") + END
    expected = [FilePiece("a/b.py", b"12345"), FilePiece("a/b.py", b"6"), FilePiece("c", b"")]
    for size in (1, 3, 7, 1000):
        parts = [stream[start : start + size] for start in range(0, len(stream), size)]
        reader = RecordReader(BOUNDS)
        assert [piece for part in parts for piece in reader.feed(part)] == expected
        assert reader.complete
    assert pieces(stream[:-8]) == expected


@pytest.mark.parametrize(
    "records",
    [
        [record("../a")], [record("/a")], [record("a/../b")], [record("a//b")], [record(".")],
        [record("a/")], [record("a\0b")], [record("a\nb")], [record("a\x1b[2Jb")],
        [record(b"\xff")],
        [record("x" * (MAX_NAME + 1))], [record("d/" * MAX_DEPTH + "a")],
        [record("/".join(["y" * 200] * 6))], [record("a", b"x" * 11)],
        [record("a", b"x" * 6), record("a", b"x" * 6)],
        [record("a", b"x" * 9), record("b", b"x" * 9), record("c", b"x" * 9)],
        [record(str(n)) for n in range(4)],
        [record("a"), record("b"), record("a")],
        [record("a"), record("a/b")], [record("a/b"), record("a")],
        [END, record("a")], [END, END],
        [(MAX_PATH + 1).to_bytes(4, "big") + bytes(4)], [b"\xff" * 8], [b'{"files": []}'],
    ],
)  # fmt: skip
def test_what_is_no_list_of_files_is_refused(records: list[bytes]) -> None:
    with pytest.raises(ConfigError):
        pieces(*records)


@given(st.lists(st.binary(max_size=40) | st.builds(record, st.text(max_size=4).map(str.encode))))
def test_forged_records_are_refused_or_within_bounds(records: list[bytes]) -> None:
    found = []
    try:
        for piece in itertools.chain.from_iterable(map(RecordReader(BOUNDS).feed, records)):
            found.append(piece)
    except (ConfigError, UnicodeEncodeError):
        pass
    assert len({piece.path for piece in found}) <= BOUNDS.files
    assert sum(len(piece.data) for piece in found) <= BOUNDS.total_bytes


def test_words_of_a_stranger_are_fit_for_a_terminal() -> None:
    assert last_words(b"one\n\x1b[2Jtwo \xff\x07\n") == "?[2Jtwo \ufffd?"
    assert len(last_words(b"x" * 1_000_000)) == 500
    assert last_words(b"\n \n") == ""


@pytest.mark.usefixtures("sandboxed")
def test_an_archive_gives_its_plain_text_files(tmp_path: Path) -> None:
    archive = honest_archive(project().files, tmp_path / "shop-1.0.tar.gz")
    archive.chmod(0o600)
    assert asyncio.run(files_of_sdist(archive)) == project().files
    two = tmp_path / "two.tar.gz"
    for names in (["a/x", "b/x"], ["a"], []):
        two.write_bytes(packed_tar(dict.fromkeys(names, b"")))
        with pytest.raises(ConfigError, match="which has one top folder"):
            asyncio.run(files_of_sdist(two))


PLAY = """
import asyncio, json, resource, sys
from pathlib import Path
from records.errors import ConfigError
from sandboxes.code.reading import files_of_sdist

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10

async def main():
    before = peak()
    for path in map(Path, sys.argv[1:]):
        try:
            said = f"read {len(await files_of_sdist(path))} files"
        except ConfigError as error:
            said = f"refused: {error}"
        print(json.dumps([said, peak() - before]), flush=True)

asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.usefixtures("sandboxed")
def test_bombs_are_refused_within_the_limits_of_the_sandbox(tmp_path: Path) -> None:
    paths = [written(make, tmp_path / f"{make.__name__}-1.tar.gz") for make in BOMBS]
    done = subprocess.run(
        [sys.executable, "-c", PLAY, *map(str, paths)], capture_output=True, text=True, check=False
    )
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(told) == len(BOMBS), done.stderr
    for (said, rise_mb), make, expected in zip(told, BOMBS, BOMBS.values(), strict=True):
        assert said.startswith("refused: "), (make.__name__, said)
        assert re.search(expected, said), (make.__name__, said)
        assert "\n" not in said
        assert rise_mb < 50, make.__name__
