"""What the endpoint's own log says of kills and budgets: the benchmarks in small, as they are."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.flows.conftest import ROOT

pytestmark = pytest.mark.slow


def run(script: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, f"benchmarks/{script}", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    return done.stdout


def test_kills_cost_at_most_what_was_in_flight_and_change_no_byte(tmp_path: Path) -> None:
    small = ("--tasks", "8", "--kills", "2", "--shard-size", "3", "--latency-ms", "100")
    printed = run("bench_kills.py", *small, "--out", str(tmp_path / "kills"))
    assert "killed 1:" in printed
    assert "| none |" in printed


def test_the_server_never_counts_more_than_the_budget(tmp_path: Path) -> None:
    """Of tokens, of USD, of one stage; the run then goes on to the same rows."""
    printed = run("bench_faults.py", "--tasks", "6", "--only", "budget")
    assert printed.count("| yes |") == 6  # three faults, in the course of it and in the end
