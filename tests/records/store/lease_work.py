"""Work for child processes that hold, want or share a lease."""

import os
import time
from pathlib import Path
from typing import Any

from records.errors import ConfigError, SynthError
from records.store.dataset import Dataset
from records.store.lease import hold
from tests.records.rows import commit, trajectories


def hold_for_ever(folder: Path, holds: Any) -> None:
    with hold(Dataset.open(folder), run_id="first", what="a long run"):
        holds.set()
        while True:
            time.sleep(1)


def contend(folder: Path, name: str, together: Any, won: Any) -> None:
    """Want the dataset at the same time as others; a winner holds it until all have tried."""
    dataset = Dataset.open(folder)
    together.wait()
    try:
        with hold(dataset, run_id=name, what=name):
            won.put(name)
            together.wait()
    except ConfigError:
        together.wait()


def commit_shards(folder: Path, token: str, first: int, count: int) -> None:
    dataset = Dataset.open(folder)
    with hold(dataset, run_id="r", what="a child flow", token=token):
        for shard in range(first, first + count):
            commit(dataset, shard, trajectories=trajectories(f"{shard:03d}"))


def commit_same_key(folder: Path, token: str, shard: int, together: Any, won: Any) -> None:
    dataset = Dataset.open(folder)
    with hold(dataset, run_id="r", what="a child flow", token=token):
        together.wait()
        try:
            commit(dataset, shard, trajectories=trajectories("the one"))
        except SynthError:
            return
        won.put(os.getpid())
