"""Commands as a user gives them, and the dataset of a small run."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from flows.cli import main as cli
from tests.flows.pipeline_work import run_pipeline

ROOT = Path(__file__).parents[2]

Synth = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def small_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dataset of an undisturbed run of `SMALL`: what disturbed ones must come to as well."""
    folder = tmp_path_factory.mktemp("small") / "d"
    run_pipeline(folder)
    return folder


@pytest.fixture
def refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Synth:
    """As `synth`, in this process, which has imported what a new one would take seconds for: what
    is refused, commands that read, and runs where nothing hangs on their being a process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        code = cli.run(arguments)
        out, err = capfd.readouterr()
        return subprocess.CompletedProcess(arguments, code, out, err)

    return run


@pytest.fixture
def synth(tmp_path: Path) -> Synth:
    """Run `synth ARGS` as a user would, in an empty folder; the result holds code and output."""

    def run(*arguments: str, timeout_s: float = 300) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "flows.cli.main", *arguments],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "200"},
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    return run


def ours_still_running(folder: Path) -> list[str]:
    """Command lines of processes whose environment or arguments name the folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
        except OSError:
            continue
        if str(folder).encode() in words and int(process.name) != os.getpid():
            found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
    return found
