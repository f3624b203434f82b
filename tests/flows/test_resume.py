"""Whatever happens to a run, the same command completes it: same rows, none twice, none missing."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from offline_llm.settings.settings import Misbehaviour
from records.store.dataset import Dataset
from synth.engine.job_config import OfflineConfig
from synth.pipeline.config import RunConfig
from tests.flows.conftest import ROOT, ours_still_running
from tests.flows.pipeline_work import SMALL, content_of, run_pipeline
from tests.killing import run, spread

KILLS = 4
"""Kill points of the default tests, spread over the run; all of them are tried in `scale`."""


def accounts(dataset: Dataset) -> list[tuple[str, int, int]]:
    """(stage, requested, kept + dropped + failed) over all shards."""
    return (
        dataset.connect()
        .execute(
            "select stage, sum(requested), sum(kept + dropped + failed) from stages group by all"
        )
        .fetchall()
    )


def killed_and_resumed(folder: Path, kill_at: int, expected: dict[str, bytes]) -> bool:
    """Kill a run at this point and run it again; False where it ends before the point."""
    if not run(run_pipeline, folder, kill_at=kill_at).killed:
        return False
    assert not run(run_pipeline, folder).killed
    assert content_of(folder) == expected, f"killed at point {kill_at}"
    assert not (folder / "lease.json").exists()
    for stage, requested, counted in accounts(Dataset.open(folder)):
        assert requested == counted, stage
    return True


@pytest.mark.slow
def test_killed_between_writes_the_same_command_completes(tmp_path: Path) -> None:
    points = run(run_pipeline, tmp_path / "whole").points
    expected = content_of(tmp_path / "whole")
    for kill_at in spread(points, KILLS, seed=7):
        assert killed_and_resumed(tmp_path / f"killed-{kill_at}", kill_at, expected)


@pytest.mark.scale
def test_killed_between_every_pair_of_writes(tmp_path: Path, small_run: Path) -> None:
    expected, kill_at = content_of(small_run), 1
    while killed_and_resumed(tmp_path / f"killed-{kill_at}", kill_at, expected):
        kill_at += 1
    assert kill_at > 100


@pytest.mark.slow
def test_concurrency_and_shard_size_change_no_byte(tmp_path: Path, small_run: Path) -> None:
    other = {"concurrency": 3, "shard_size": 1, "offline": OfflineConfig(jitter_s=0.02)}
    run_pipeline(tmp_path / "d", SMALL.model_copy(update=other))
    assert content_of(tmp_path / "d") == content_of(small_run)


@pytest.mark.slow
def test_more_tasks_change_no_row_that_exists(tmp_path: Path, small_run: Path) -> None:
    folder = Path(shutil.copytree(small_run, tmp_path / "d"))
    before = {row["trajectory_id"]: row for row in Dataset.open(folder).rows("trajectories")}
    run_pipeline(folder, SMALL.model_copy(update={"num_tasks": 7}))
    after = {row["trajectory_id"]: row for row in Dataset.open(folder).rows("trajectories")}
    assert before.items() <= after.items()
    assert len(after) > len(before)


@pytest.mark.slow
def test_a_misbehaving_endpoint_loses_no_item(tmp_path: Path) -> None:
    shares = Misbehaviour(
        rate_limit=0.1, server_error=0.08, hang=0.02, truncated=0.05, malformed=0.05, hang_s=0.2
    )
    config = RunConfig(
        domains=("clinic_desk", "web_shop"),
        servers=(),
        code=(),
        num_tasks=16,
        max_failed=1.0,
        offline=OfflineConfig(misbehave=shares),
    )
    run_pipeline(tmp_path / "d", config)
    dataset = Dataset.open(tmp_path / "d")
    requested = {stage: n for stage, n, counted in accounts(dataset) if n == counted}
    assert requested["tasks"] == 16
    assert requested.keys() == {stage for stage, _, _ in accounts(dataset)}
    failures = dataset.connect().execute(
        "select count(*) from llm_calls where status in ('rate_limited', 'server_error')"
    )
    assert failures.fetchone()[0] > 0  # type: ignore[index]


@pytest.mark.slow
def test_kill_9_under_prefect_leaves_one_server_which_the_next_command_stops(
    tmp_path: Path,
) -> None:
    """No API is given here, so the command starts the project's own server."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PREFECT")}
    environment |= {"PYTHONPATH": str(ROOT), "SYNTH_PREFECT_HOME": str(tmp_path / "prefect")}
    command = [sys.executable, "-m", "flows.cli.main", "demo", "--dataset", "d"]
    command += ["--set", "num_tasks=6", "--set", "concurrency=2", "--set", "shard_size=2"]
    command += ["--set", 'domains=["clinic_desk", "web_shop"]', "--set", "servers=[]"]
    command += ["--set", "code=[]"]
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL)
    plan = tmp_path / "d" / "plans"
    deadline = time.monotonic() + 120
    while not list(plan.glob("*/rollouts.json")) and time.monotonic() < deadline:
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    dataset = Dataset.open(tmp_path / "d")
    ids = [row["trajectory_id"] for row in dataset.rows("trajectories", ["trajectory_id"])]
    assert len(ids) == len(set(ids)) == len(dataset.ids("tasks"))
    assert ours_still_running(tmp_path) == []
    with closing(sqlite3.connect(tmp_path / "prefect" / "prefect.db")) as database:
        states = {state for (state,) in database.execute("select state_type from flow_run")}
    assert states == {"COMPLETED", "CRASHED"}  # none is left "running" for ever
