"""The short form of the proof: every part of it at work, from the data to the table."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.flows.conftest import ROOT


@pytest.mark.slow
def test_the_short_form_makes_trains_and_scores(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "proof.py", "--short", "--out", tmp_path],
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == (tmp_path / "proof.md").read_text().strip()
    for policy in ("pretrained only", "nearest training example", "fine-tuned on accepted"):
        assert policy in done.stdout
