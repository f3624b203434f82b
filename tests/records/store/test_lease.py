"""The lease: one run writes at a time, a dead owner is no obstacle, children share."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from records.errors import ConfigError
from records.files import write_atomic
from records.store import lease
from records.store.dataset import Dataset
from records.store.lease import hold
from tests.killing import PROCESSES
from tests.records.rows import commit, trajectories
from tests.records.store.lease_work import commit_same_key, commit_shards, contend, hold_for_ever


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return Dataset.create_or_open(tmp_path / "dataset")


@pytest.fixture
def children() -> Iterator[Callable[..., Any]]:
    started = []

    def start(work: Callable[..., None], *args: Any) -> Any:
        child = PROCESSES.Process(target=work, args=args)
        child.start()
        started.append(child)
        return child

    yield start
    for child in started:
        child.kill()
        child.join()


def write_lease(dataset: Dataset, *, silent_s: float = 0, **changes: Any) -> None:
    """A lease of somebody else: alive and of another host unless the changes say otherwise."""
    theirs = {
        "token": "theirs",
        "host": "elsewhere",
        "pid": 7,
        "started": "1",
        "run_id": "other",
        "what": "synth run other.yaml",
        "since": "2026-01-01T00:00:00+00:00",
    }
    path = dataset.root / lease.FILE
    path.write_text(json.dumps(theirs | changes))
    then = time.time() - silent_s
    os.utime(path, (then, then))


def test_a_second_run_is_told_who_holds_it(dataset: Dataset) -> None:
    with (
        hold(dataset, run_id="first", what="synth run a.yaml") as held,
        pytest.raises(ConfigError, match=r"held by synth run a\.yaml \(run first") as refused,
        hold(dataset, run_id="second", what="synth run b.yaml"),
    ):
        pass
    for part in (f"process {os.getpid()}", held.since, held.host, "heartbeat", "Wait for it"):
        assert part in str(refused.value)
    with hold(dataset, run_id="second", what="synth run b.yaml"):
        pass
    assert not (dataset.root / lease.FILE).exists()


def test_the_lease_is_given_back_when_the_run_fails(dataset: Dataset) -> None:
    with pytest.raises(KeyError), hold(dataset, run_id="r", what="x"):
        raise KeyError
    assert not (dataset.root / lease.FILE).exists()
    assert lease.VARIABLE not in os.environ or not os.environ[lease.VARIABLE]


@pytest.mark.slow
def test_an_owner_killed_on_this_host_is_replaced_at_once(
    dataset: Dataset, children: Callable[..., Any]
) -> None:
    holds = PROCESSES.Event()
    child = children(hold_for_ever, dataset.root, holds)
    assert holds.wait(60)
    with (
        pytest.raises(ConfigError, match=f"a long run .*process {child.pid}"),
        hold(dataset, run_id="second", what="x"),
    ):
        pass
    child.kill()
    child.join()
    with hold(dataset, run_id="second", what="x"):
        commit(dataset, trajectories=trajectories("a"))


def test_a_pid_that_another_process_got_since_is_a_dead_owner(dataset: Dataset) -> None:
    with hold(dataset, run_id="r", what="x") as mine:
        host = mine.host
    write_lease(dataset, host=host, pid=os.getpid(), started="long ago")
    with hold(dataset, run_id="r", what="x") as mine:
        assert mine.pid == os.getpid()


def test_an_owner_elsewhere_is_dead_after_a_minute_of_silence(dataset: Dataset) -> None:
    write_lease(dataset, silent_s=lease.DEAD_AFTER_S - 20)
    with pytest.raises(ConfigError, match="on elsewhere"), hold(dataset, run_id="r", what="x"):
        pass
    write_lease(dataset, silent_s=lease.DEAD_AFTER_S + 1)
    with hold(dataset, run_id="r", what="x") as mine:
        assert mine.host != "elsewhere"


@pytest.mark.slow
def test_exactly_one_of_many_replaces_a_dead_owner(
    dataset: Dataset, children: Callable[..., Any]
) -> None:
    for _ in range(3):
        write_lease(dataset, silent_s=1000)
        together, won = PROCESSES.Barrier(4), PROCESSES.SimpleQueue()
        contenders = [children(contend, dataset.root, f"run{i}", together, won) for i in range(4)]
        for child in contenders:
            child.join(60)
            assert child.exitcode == 0
        won.get()
        assert won.empty()


def test_the_same_run_shares_its_lease_in_process_and_with_children(dataset: Dataset) -> None:
    script = (
        "import sys\nfrom records.store.lease import hold\n"
        "from records.store.dataset import Dataset\n"
        "with hold(Dataset.open(sys.argv[1]), run_id=sys.argv[2], what='child') as lease:\n"
        "    print(lease.what)"
    )
    child = [sys.executable, "-c", script, str(dataset.root)]
    with hold(dataset, run_id="r", what="parent") as outer:
        with hold(dataset, run_id="r", what="child flow") as inner:
            assert inner == outer
        assert (dataset.root / lease.FILE).exists()
        sharing = subprocess.run([*child, "r"], capture_output=True, text=True, check=False)
        assert sharing.stdout.strip() == "parent", sharing.stderr
        other = subprocess.run([*child, "s"], capture_output=True, text=True, check=False)
        assert "ConfigError" in other.stderr


def test_nobody_else_can_commit_while_it_is_held(dataset: Dataset) -> None:
    write_lease(dataset)
    with pytest.raises(ConfigError, match="this process does not hold it and cannot write"):
        commit(dataset, trajectories=trajectories("a"))
    assert dataset.commits() == []


def test_the_orphan_of_a_replaced_owner_can_commit_no_more(dataset: Dataset) -> None:
    with hold(dataset, run_id="r", what="x"):
        commit(dataset, 0, trajectories=trajectories("a"))
        write_lease(dataset)
        with pytest.raises(ConfigError, match="cannot write"):
            commit(dataset, 1, trajectories=trajectories("b"))
    assert (dataset.root / lease.FILE).exists(), "a lease that is not ours is not given back"


def test_heartbeats_touch_the_lease_and_never_that_of_a_successor(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "HEARTBEAT_S", 0.01)
    path = dataset.root / lease.FILE
    with hold(dataset, run_id="r", what="x") as mine:
        os.utime(path, (0, 0))
        while path.stat().st_mtime == 0:
            time.sleep(0.01)
        theirs = mine.model_copy(update={"token": "theirs"})
        write_atomic(path, theirs.model_dump_json().encode())
        os.utime(path, (0, 0))
        time.sleep(0.1)
        assert path.stat().st_mtime == 0


def test_a_new_owner_sweeps_what_a_killed_writer_left_and_nothing_else(dataset: Dataset) -> None:
    commit(dataset, trajectories=trajectories("a"))
    kept = sorted(dataset.root.rglob("*"))
    write_atomic(dataset.plan_path("r", "rollouts"), b"{}")
    write_atomic(dataset.root / "notes.txt", b"mine")
    leftovers = [
        dataset.root / ".tmp-1-views.sql",
        dataset.root / "commits/.tmp-2-000002.json",
        dataset.root / "tables/trajectories/rollouts-00001-0123.parquet",
        dataset.root / "tables/trajectories/.tmp-3-rollouts-00002-4567.parquet",
    ]
    for path in leftovers:
        path.write_bytes(b"half")
    (dataset.root / "views.sql").write_text("-- of the commit before")
    with hold(dataset, run_id="r", what="x"):
        assert not any(path.exists() for path in leftovers)
        assert (dataset.root / "notes.txt").exists()
        assert dataset.plan_path("r", "rollouts").exists()
        assert all(path.exists() for path in kept)
        assert "rollouts-00000" in (dataset.root / "views.sql").read_text()


def test_a_dataset_that_cannot_be_swept_is_not_left_held(dataset: Dataset) -> None:
    (dataset.root / "commits").mkdir()
    (dataset.root / "commits/000001.json").write_text("{}")
    with pytest.raises(ConfigError, match="does not fit"), hold(dataset, run_id="r", what="x"):
        pass
    assert not (dataset.root / lease.FILE).exists()


def test_a_damaged_lease_says_what_to_do(dataset: Dataset) -> None:
    (dataset.root / lease.FILE).write_text("{")
    with pytest.raises(ConfigError, match="delete it"), hold(dataset, run_id="r", what="x"):
        pass


def test_processes_that_share_a_lease_commit_side_by_side(
    dataset: Dataset, children: Callable[..., Any]
) -> None:
    with hold(dataset, run_id="r", what="parent") as shared:
        flows = [
            children(commit_shards, dataset.root, shared.token, first, 8) for first in (0, 8, 16)
        ]
        for child in flows:
            child.join(60)
            assert child.exitcode == 0
    numbers = [commit.number for commit in dataset.commits()]
    assert numbers == list(range(1, 25))
    assert dataset.ids("trajectories") == {f"{shard:03d}" for shard in range(24)}
    text = (dataset.root / "views.sql").read_text()
    assert all(part.name in text for commit in dataset.commits() for part in commit.parts)


def test_one_key_is_committed_by_one_process_only(
    dataset: Dataset, children: Callable[..., Any]
) -> None:
    with hold(dataset, run_id="r", what="parent") as shared:
        together, won = PROCESSES.Barrier(3), PROCESSES.SimpleQueue()
        flows = [
            children(commit_same_key, dataset.root, shared.token, shard, together, won)
            for shard in range(3)
        ]
        for child in flows:
            child.join(60)
            assert child.exitcode == 0
        won.get()
        assert won.empty()
    assert len(dataset.rows("trajectories")) == len(dataset.commits()) == 1
    assert len(list(dataset.root.glob("tables/*/*"))) == 1
