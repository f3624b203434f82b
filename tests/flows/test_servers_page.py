"""The page about servers, run: a definition that is a command, one with goals, and what a run says
that makes nothing of a server that its settings name."""

import re
import shutil
import textwrap
from pathlib import Path

import pytest

from records.store.dataset import Dataset
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


def test_goals_that_stand_on_the_page_become_trajectories(synth: Synth, tmp_path: Path) -> None:
    *_, with_goals = blocks("yaml")
    run = prepared(tmp_path, with_goals)
    done = synth("run", str(run), "--dataset", str(tmp_path / "d"))
    assert done.returncode == 0, done.stderr
    dataset = Dataset.open(tmp_path / "d")
    with dataset.connect() as views:
        [(count,)] = views.sql("select count(*) from trajectories").fetchall()
    assert count >= 4
    tasks = dataset.rows("tasks")
    assert {task["proof"]["state_read_from"] for task in tasks} == {"workspace"}


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


def test_a_named_server_that_was_not_drawn_is_told_with_the_count_that_reaches_it(
    synth: Synth, tmp_path: Path
) -> None:
    *_, with_goals = blocks("yaml")
    run = prepared(tmp_path, with_goals, "[agents]\nserver_share = 0.1\n")
    text = run.read_text().replace("domains = []", 'domains = ["clinic_desk"]')
    run.write_text(text.replace("num_tasks = 12", "num_tasks = 8"))
    done = synth("run", str(run), "--dataset", str(tmp_path / "d"))
    assert done.returncode == 0, done.stderr
    words = r"server loans was drawn for none of the 8 tasks; --set num_tasks=(\d+)"
    told = re.search(words, done.stdout + done.stderr)
    assert told is not None
    assert int(told[1]) > 8
