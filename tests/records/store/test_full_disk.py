"""A refused write anywhere in a commit leaves the dataset as it was, and says why."""

import errno
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from records.errors import SynthError
from records.store.dataset import Dataset
from tests.records.rows import commit, row, trajectories


def commit_two_tables(dataset: Dataset, shard: int, one: str, messages: Any = None) -> None:
    calls = [row("tool_calls", trajectory_id=one, call_index=0)]
    rows = trajectories(one, messages=messages)
    commit(dataset, shard, trajectories=rows, tool_calls=calls)


def files(dataset: Dataset) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in dataset.root.rglob("*") if path.is_file()}


def refusing(call: Callable[..., Any], allowed: Iterator[int]) -> Callable[..., Any]:
    def refuse(*args: Any, **options: Any) -> Any:
        if next(allowed, None) is None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return call(*args, **options)

    return refuse


@pytest.mark.parametrize("call", ["open", "write", "fsync", "link", "replace", "mkdir"])
def test_a_full_disk_at_any_call(call: str, tmp_path: Path) -> None:
    refused = 0
    for allowed in range(100):
        dataset = Dataset.create_or_open(tmp_path / str(allowed))
        commit(dataset, 0, trajectories=trajectories("a"))
        before = files(dataset)
        with pytest.MonkeyPatch.context() as monkeypatch:
            monkeypatch.setattr(os, call, refusing(getattr(os, call), iter(range(allowed))))
            try:
                commit_two_tables(dataset, 1, "b")
            except SynthError as error:
                assert "disk full while writing" in str(error)  # noqa: PT017 - may not be raised
                refused += 1
            else:
                break
        if len(dataset.commits()) == 1:
            assert files(dataset) == before
            commit_two_tables(dataset, 1, "b")
        assert dataset.ids("trajectories") == {"a", "b"}
        assert dataset.ids("tool_calls") == {("b", 0)}
    assert refused > 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    mounted = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(tmp_path)]
    if os.geteuid() != 0 or subprocess.run(mounted, check=False, capture_output=True).returncode:
        pytest.skip("cannot mount a tmpfs here")
    yield tmp_path
    subprocess.run(["umount", str(tmp_path)], check=True)


def test_a_disk_that_is_really_full(small_disk: Path) -> None:
    dataset = Dataset.create_or_open(small_disk / "dataset")
    commit_two_tables(dataset, 0, "a")
    before = files(dataset)
    noise = [os.urandom(1000).hex() for _ in range(300)]
    with pytest.raises(SynthError, match=r"disk full .*\n?.* free some space"):
        commit_two_tables(dataset, 1, "b", noise)
    assert files(dataset) == before
    commit_two_tables(dataset, 1, "b")
    assert dataset.ids("trajectories") == {"a", "b"}
