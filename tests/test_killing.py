"""The killing harness sees what it claims to see: it catches a writer that is not safe."""

import os
from pathlib import Path

import pytest

from tests.killing import Ended, killed_everywhere, run


def careless(folder: Path) -> None:
    """Writes in place, and elsewhere too."""
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder / "data", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.write(handle, b"first half, second half")
    os.close(handle)
    (folder.parent / "elsewhere").write_text("not watched")
    with (folder / "note").open("w") as note:
        note.write("done")
    (folder / "note").unlink()


def broken(folder: Path) -> None:
    raise KeyError(folder)


@pytest.mark.slow
def test_points_lie_around_and_within_writes(tmp_path: Path) -> None:
    left = [
        (folder / "data").read_bytes() if (folder / "data").exists() else None
        for folder in killed_everywhere(careless, tmp_path / "all")
    ]
    # before mkdir and open, before write, half-way, and then before open and unlink of the note
    whole = b"first half, second half"
    assert left == [None, None, b"", whole[:11], whole, whole]
    assert run(careless, tmp_path / "through") == Ended(killed=False, points=6)


def test_every_second_point(tmp_path: Path) -> None:
    folders = [folder.name for folder in killed_everywhere(careless, tmp_path, step=2)]
    assert folders == ["killed-at-0001", "killed-at-0003", "killed-at-0005"]


def test_failing_work_fails_the_caller(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="broken ended with 1"):
        run(broken, tmp_path / "x")
