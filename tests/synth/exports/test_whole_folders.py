"""An export appears whole or not at all: under kills, a full disk, and beside another writer."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from records.errors import ConfigError, SynthError
from records.new_folder import new_folder
from records.store.dataset import Dataset
from synth.exports.export import export_dataset
from tests.killing import killed_everywhere
from tests.synth.exports.export_work import export_into, write_folder


@pytest.mark.slow
def test_a_kill_leaves_a_whole_export_or_none(dataset: Dataset, tmp_path: Path) -> None:
    export_into(tmp_path / "expected", dataset.root)
    expected = contents(tmp_path / "expected")
    for folder in killed_everywhere(export_into, tmp_path, dataset.root, step=9):
        assert not (folder / "out").exists() or contents(folder) == expected
        export_into(folder, dataset.root)
        assert contents(folder) == expected


@pytest.mark.slow
def test_a_kill_at_any_point_leaves_a_whole_folder_or_none(tmp_path: Path) -> None:
    write_folder(tmp_path / "expected")
    expected = contents(tmp_path / "expected")
    for folder in killed_everywhere(write_folder, tmp_path):
        assert not (folder / "out").exists() or contents(folder) == expected
        write_folder(folder)
        assert contents(folder) == expected


def contents(folder: Path) -> dict[str, bytes]:
    """Every file, what killed writers left included."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


@pytest.fixture
def full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on a disk with no room: syncing anything but the first file is refused."""
    allowed = iter(range(1))
    fsync = os.fsync

    def refuse(handle: int) -> None:
        if next(allowed, None) is None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", refuse)
    return tmp_path


@pytest.mark.parametrize("format_", ["hf", "openai"])
def test_a_full_disk_leaves_nothing(format_: Any, dataset: Dataset, full_disk: Path) -> None:
    with pytest.raises(SynthError, match=r"disk full while writing .*out"):
        export_dataset(dataset, full_disk / "out", format=format_)
    assert names_in(full_disk) == []


def test_of_two_writers_the_first_to_end_wins_and_the_other_is_told(tmp_path: Path) -> None:
    def write_slowly() -> None:
        with new_folder(tmp_path / "out") as slow:
            (slow / "by").write_text("slow")
            with new_folder(tmp_path / "out") as fast:
                assert (slow / "by").exists(), "the sweep must see that its writer lives"
                (fast / "by").write_text("fast")

    with pytest.raises(SynthError, match=r"cannot write .*out"):
        write_slowly()
    assert contents(tmp_path) == {"out/by": b"fast"}


def test_an_existing_folder_is_refused(dataset: Dataset, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(ConfigError, match="out exists already"):
        export_dataset(dataset, tmp_path / "out")
