"""The page about servers, run: a definition that is a command, and what a run says that makes
nothing of it."""

import re
import shutil
import textwrap
from pathlib import Path

import pytest

from tests.flows.conftest import Synth

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("sandboxed")]

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "servers.md").read_text()
PROGRAM = ROOT / "tests" / "sandboxes" / "mcp" / "loan_server.py"


def blocks(kind: str) -> list[str]:
    found = re.findall(rf"```{kind}\n(.*?)\n *```", PAGE, re.DOTALL)
    return [textwrap.dedent(block) + "\n" for block in found]


def prepared(folder: Path, definition: str, further: str = "") -> Path:
    """The folder with the program, its definition, and the page's run without its endpoint."""
    shutil.copy(PROGRAM, folder)
    (folder / "loans.yaml").write_text(definition)
    [settings] = blocks("toml")
    offline = settings.partition("[roles.generator]")[0]
    named = offline.replace('"loans.yaml"', f'"{folder / "loans.yaml"}"')
    (folder / "run.toml").write_text(named.replace("num_tasks = 40", "num_tasks = 12") + further)
    return folder / "run.toml"


def test_a_run_that_makes_nothing_of_a_named_server_ends_with_1_and_says_why(
    synth: Synth, tmp_path: Path
) -> None:
    bare = blocks("yaml")[0]
    run = prepared(tmp_path, bare)
    done = synth("run", str(run), "--dataset", str(tmp_path / "d"))
    assert done.returncode == 1
    assert "the run made no trajectory: no_goal_found 12" in done.stderr
    assert "server loans gave no task of 12 that were tried: no_goal_found 12" in done.stderr
    assert "The offline model proposes no goals" in done.stderr
