"""The page about servers, run: a definition that is a command becomes accepted trajectories, goals
by hand are proved, and a run says what it made nothing of."""

import asyncio
import json
import re
import shlex
import shutil
import textwrap
from pathlib import Path

import pytest

from sandboxes.mcp.importing import import_server
from sandboxes.mcp.launch import load_server
from sandboxes.mcp.session import open_server
from synth.tasks.on_server import NO_VARIANTS
from synth.tasks.servers.drafting import draft_for_server
from synth.tasks.servers.proving import prove_on_server
from tests.flows.conftest import Synth

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("sandboxed")]

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "servers.md").read_text()
PROGRAM = ROOT / "tests" / "sandboxes" / "mcp" / "loan_server.py"
BROKEN = '''
from mcp.server import MCPServer

server = MCPServer("broken")

@server.tool()
def weigh(parcel: str) -> str:
    """Weigh a parcel."""
    raise ValueError("the scales are out of order")

server.run()
'''


def blocks(kind: str) -> list[str]:
    found = re.findall(rf"```{kind}\n(.*?)\n *```", PAGE, re.DOTALL)
    return [textwrap.dedent(block) + "\n" for block in found]


def prepared(folder: Path, definition: str, further: str = "") -> Path:
    """The folder with the program, its definition, and the page's run without its endpoint."""
    shutil.copy(PROGRAM, folder)
    (folder / "broken.py").write_text(BROKEN)
    (folder / "loans.yaml").write_text(definition)
    [settings] = blocks("toml")
    offline = settings.partition("[roles.all]")[0]
    named = offline.replace('"loans.yaml"', f'"{folder / "loans.yaml"}"')
    (folder / "run.toml").write_text(named.replace("num_tasks = 40", "num_tasks = 8") + further)
    return folder / "run.toml"


def test_a_command_becomes_accepted_trajectories(
    synth: Synth, refusal: Synth, tmp_path: Path
) -> None:
    run = prepared(tmp_path, blocks("yaml")[0])
    dataset = tmp_path / "d"
    done = synth("run", str(run), "--dataset", str(dataset))
    assert done.returncode == 0, done.stderr
    count = "select count(*) as n from curation where accepted"
    [accepted] = json.loads(refusal("sql", count, "--dataset", str(dataset), "--json").stdout)
    assert accepted["n"] >= 1
    [command] = [b for b in re.findall(r"```\n(synth sql .*?)\n```", PAGE) if "server_goals" in b]
    words = shlex.split(command.replace("data/loans", str(dataset)))[1:]
    goals = refusal(*words)
    assert goals.returncode == 0, goals.stderr
    assert "Lend an item" in goals.stdout, goals.stdout


def test_goals_by_hand_are_proved(tmp_path: Path) -> None:
    [by_hand] = [block for block in blocks("yaml") if "\ngoals:" in block]
    prepared(tmp_path, by_hand)
    config = load_server(tmp_path / "loans.yaml")

    async def run() -> set[str]:
        tools = {row["name"]: row for row in await import_server(config)}
        proved: set[str] = set()
        for goal in config.goals:
            alone = config.model_copy(update={"goals": (goal,)})
            made = draft_for_server(
                alone, tools, goal.id, count=1, disclosure="at_once", variants=NO_VARIANTS
            )
            async with open_server(config) as server:
                await prove_on_server(made, server)
            proved.add(goal.id)
        return proved

    assert asyncio.run(run()) == {"lend", "phone"}


def test_a_run_that_makes_nothing_of_a_named_server_ends_with_1_and_says_why(
    synth: Synth, tmp_path: Path
) -> None:
    run = prepared(tmp_path, "command: python broken.py\n")
    done = synth("run", str(run), "--dataset", str(tmp_path / "d"))
    assert done.returncode == 1
    assert "the run made no trajectory: no_goal_found 8" in done.stderr
    assert "server loans gave no task of 8 that were tried: no_goal_found 8" in done.stderr


def test_a_named_server_that_was_not_drawn_is_a_warning_with_the_count_that_reaches_it(
    synth: Synth, tmp_path: Path
) -> None:
    run = prepared(tmp_path, blocks("yaml")[0], '[server_goals]\nservers = "none"\n')
    text = run.read_text().replace("domains = []", 'domains = ["clinic_desk"]\nseed = 3')
    run.write_text(text.replace("num_tasks = 8", "num_tasks = 2"))
    done = synth("run", str(run), "--dataset", str(tmp_path / "d"))
    assert done.returncode == 0, done.stderr
    said = re.search(
        r"server loans was drawn for none of the 2 tasks; --set num_tasks=(\d+)", done.stderr
    )
    assert said is not None, done.stderr
    assert int(said[1]) > 2
