"""Worlds that a server's own tools make, goals in them, and queries that an agent composes."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from records.errors import ConfigError
from records.tables.schemas import Row
from sandboxes.mcp.importing import import_server
from sandboxes.mcp.joined import open_live
from sandboxes.mcp.joining import with_starts
from sandboxes.mcp.launch import load_server, server_of_command
from sandboxes.mcp.servers import ServerConfig, ServerGoal
from sandboxes.mcp.session import open_server
from sandboxes.mcp.warm import WarmServers
from synth.tasks.on_server import NO_VARIANTS
from synth.tasks.servers import derivable
from synth.tasks.servers.config import ServerGoalsConfig
from synth.tasks.servers.drafting import draft_for_server
from synth.tasks.servers.filling import make_start, may_be_empty, starts_in
from synth.tasks.servers.finding import find_goals
from synth.tasks.servers.proving import prove_on_server
from tests.sandboxes.mcp.joined_work import joined_in, with_book

pytestmark = [pytest.mark.usefixtures("sandboxed"), pytest.mark.slow]

PROGRAMS = Path(__file__).parents[2] / "sandboxes" / "mcp"
PARCEL = "collect the parcel from the post office"
"""Holds words of queries."""

ERRANDS = server_of_command(f"python {PROGRAMS / 'errand_server.py'}")


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"tool": tool, "arguments": arguments}


class Author:
    """Fills a server in two rounds, the second with ids that the first one's answers show, and then
    proposes goals in it."""

    def __init__(self) -> None:
        self.prompts: dict[str, str] = {}
        self.ids: dict[str, str] = {}

    async def structured(self, role: str, messages: Any, **asked: Any) -> Any:
        prompt = self.prompts[asked["step"]] = messages[-1]["content"]
        match asked["step"]:
            case "start-0":
                return {"calls": [call("add_list", name="Town"), call("add_list", name="Market")]}
            case "start-1":
                answers = prompt.split("## Calls so far")[1].splitlines()
                made = [json.loads(line.rstrip(",")) for line in answers if line.startswith("{")]
                self.ids = {
                    one["arguments"]["name"]: json.loads(one["answer"])["id"] for one in made
                }
                town = self.ids["Town"]
                return {
                    "calls": [
                        call("add_errand", list_id=town, what=PARCEL, cost=2.5),
                        call("add_errand", list_id=town, what="fetch the shoes", cost=31.0),
                        call("add_errand", list_id="nowhere", what="lost", cost=1.0),
                    ]
                }
            case "start-2" | "look":
                return {"calls": []}
            case "goals-0":
                return {"goals": self.goals()}
            case "told-0":
                block = json.loads(prompt.split("```json\n")[1].split("\n```")[0])
                told = {"cost": "31.0", "sum": "33.5"}
                return {
                    "goals": [
                        {
                            "number": one["number"],
                            "fault": "",
                            "told": [told[place["label"]] for place in one["told"]],
                            "other_fits": "other" in one,
                        }
                        for one in block
                    ]
                }
            case _:
                return {"goals": []}

    def goals(self) -> list[dict[str, Any]]:
        town = self.ids["Town"]
        none: dict[str, Any] = {"before": [], "calls": []}
        tables = call("ask", query="select name, sql from sqlite_master")
        summed = "select sum(cost) from errand join list on list.id = list_id where name = 'Town'"
        look = [call("lists"), call("errands", list_id=town)]
        dear = call("add_errand", list_id=town, what="buy a bicycle", cost=480.0)

        def goal(text: str, form: str, calls: Any, **further: Any) -> dict[str, Any]:
            base = {"goal": text, "form": form, "calls": calls, "said": [], "told": []}
            return {**base, "twin": none, "seen_by": [], **further}

        return [
            goal(
                "Tell me what all errands of the list Town cost together.",
                "plain",
                [tables, call("ask", query=summed)],
                told=[{"call": 1, "label": "sum"}],
            ),
            goal(
                "Tell me what the dearest errand on the list Town costs.",
                "chosen",
                look,
                told=[{"call": 1, "label": "cost"}],
                twin={"before": [dear], "calls": look},
            ),
            goal(
                "Put a note about the letter on the list Town.",
                "plain",
                [look[0], call("add_errand", list_id=town, what="Go there by bus", cost=3.0)],
            ),
            goal(
                "Tell me what all errands of the other list cost.",
                "plain",
                [tables, call("ask", query=summed.replace("Town", "Market"))],
                told=[{"call": 1, "label": "sum"}],
            ),
        ]


async def start_of(
    config: ServerConfig, author: Author | None = None
) -> tuple[list[Row], dict[str, Row], Author]:
    tools = {row["name"]: row for row in await import_server(config)}
    author = author or Author()
    rows = await make_start(
        config,
        tools,
        author,  # type: ignore[arg-type]
        item_id="start1",
        definition="definition",
        model="model",
    )
    return rows, tools, author


def test_a_server_is_filled_once_and_every_task_starts_from_it() -> None:
    assert may_be_empty(ERRANDS)

    async def run() -> None:
        [row], tools, author = await start_of(ERRANDS)
        assert row["drop_reason"] is None
        assert row["num_rows"] == 4, "two lists and two errands; the one on no list was refused"
        assert [one for one in row["calls"] if "error" in one] == row["calls"][-1:]
        starts = starts_in([row])["definition"]
        config = ERRANDS.model_copy(update={"starts": starts, "start": "start1"})
        assert config.identity() == ERRANDS.identity()
        start = {"fixture": "default", "start": "start1"}
        async with WarmServers(live=1) as warm:
            for wanted, there in ((start, True), ({"fixture": "default"}, False), (None, True)):
                async with warm.open(config, wanted) as server:
                    shown = json.loads((await server.call("lists", {})).text)
                    ids = {name: key for key, name in shown}
                    assert ids == (author.ids if there else {})
        goals = await find_goals(
            config,
            tools,
            author,  # type: ignore[arg-type]
            item_id="item",
            settings=ServerGoalsConfig(rounds=1),
            definition="definition",
            model="model",
            open_fresh=open_server,
        )
        note, other, summed, dearest = goals  # those dropped for what executing them shows first
        assert summed["drop_reason"] is None, summed["detail"]
        assert summed["goal"]["composed"] == ["0.query", "1.query"]
        assert dearest["form"] == "plain", "what the dearest costs is asked with the same calls"
        assert note["drop_reason"] == "underivable_argument", "nobody said these words"
        assert other["drop_reason"] == "underivable_argument", "nothing showed the name Market"
        config = config.model_copy(update={"goals": (ServerGoal.model_validate(summed["goal"]),)})
        made = draft_for_server(
            config, tools, "task", count=2, disclosure="mixed", variants=NO_VARIANTS
        )
        assert made.draft.initial_state == start
        async with open_server(config, made.draft.initial_state) as server:
            draft, _ = await prove_on_server(made, server)
        assert draft.goals[0].asks[0].values == (33.5,), "whoever says 33.50 has told it"

    asyncio.run(run())


def test_a_row_of_its_own_leaves_a_server_empty() -> None:
    """What it keeps for itself is nothing to ask for, and no filling."""
    program = (PROGRAMS / "errand_server.py").read_text()
    settings = (
        "BASE.execute(\"insert or ignore into list values ('own', 'settings')\")\nBASE.commit()\n"
    )
    own = program.replace(
        "@server.tool()\ndef add_list", f"{settings}\n\n@server.tool()\ndef add_list"
    )
    config = ERRANDS.model_copy(update={"command": ("python", "-c", own)})
    [row], _, _ = asyncio.run(start_of(config))
    assert (row["drop_reason"], row["num_rows"]) == (None, 5)
    idle = Author()
    idle.structured = nothing  # type: ignore[method-assign]
    [row], _, _ = asyncio.run(start_of(config, idle))
    assert row["drop_reason"] == "not_in_workspace"


async def nothing(role: str, messages: Any, **asked: Any) -> Any:
    return {"calls": []}


class Neighbour(Author):
    """Fills one part of a joined server for people whom the other part knows."""

    async def structured(self, role: str, messages: Any, **asked: Any) -> Any:
        self.prompts[asked["step"]] = messages[-1]["content"]
        if asked["step"] != "start-0":
            return {"calls": []}
        return {
            "calls": [
                call("find_contact", name="Ines"),
                call("add_list", name="For Ines Falk"),
                call("add_contact", name="Nobody", email="nobody@example.org"),
            ]
        }


def test_the_empty_parts_of_a_joined_server_are_filled_and_the_others_stay(tmp_path: Path) -> None:
    errands = f"command: python {PROGRAMS / 'errand_server.py'}\n"
    (tmp_path / "errands.yaml").write_text(errands)
    with_book(tmp_path, read_only_tools=["find_contact"])
    config = joined_in(tmp_path, "errands.yaml", "contacts.yaml")

    async def run() -> None:
        [row], _, author = await start_of(config, Neighbour())
        assert row["drop_reason"] is None
        asked = [one["tool"] for one in row["calls"]]
        assert asked == ["find_contact", "add_list"], "what has something already is only read"
        assert {path.split("/")[0] for path in row["files"]} == {"errands"}
        assert '"part": "errands"' in author.prompts["start-0"]
        filled = with_starts(config, starts_in([row])["definition"])
        filled = filled.model_copy(update={"start": "start1"})
        assert filled.identity() == config.identity()
        start = {"fixture": "default", "start": "start1"}
        async with WarmServers(live=2) as warm:
            for wanted, there in ((start, True), ({"fixture": "default"}, False), (None, True)):
                async with warm.open(filled, wanted) as server:
                    shown = json.loads((await server.call("lists", {})).text)
                    assert [name for _, name in shown] == ["For Ines Falk"] * there
                    found = (await server.call("find_contact", {"name": "Otto"})).text
                    assert "otto.reyes@example.org" in found
        with pytest.raises(ConfigError, match="no start 'gone'"):
            async with open_live(filled, {"fixture": "default", "start": "gone"}):
                pass

    asyncio.run(run())


PINS = """
from mcp.server import MCPServer

server = MCPServer("pins")
PINS = []

@server.tool()
def add_list(name: str) -> str:
    \"\"\"Pin a list up.\"\"\"
    PINS.append(name)
    return f"{len(PINS)} pinned"

server.run()
"""
"""Keeps everything in its memory."""


def test_a_part_that_keeps_nothing_in_its_workspace_gives_no_start(tmp_path: Path) -> None:
    (tmp_path / "pins.py").write_text(PINS)
    definition = {
        "command": "python pins.py",
        "probes": {"wall": ["echo", "a wall"]},
        "fixtures": {"default": {"description": "two lists"}},
    }
    (tmp_path / "pins.yaml").write_text(json.dumps(definition))
    config = joined_in(tmp_path, "pins.yaml", "contacts.yaml")
    [row], _, _ = asyncio.run(start_of(config, Neighbour()))
    assert (row["drop_reason"], row["num_rows"]) == ("not_in_workspace", 1)


def test_a_server_that_has_something_already_is_not_filled() -> None:
    config = server_of_command(f"python {PROGRAMS / 'loan_server.py'}")
    rows, _, author = asyncio.run(start_of(config))
    assert rows == []
    assert not author.prompts


def test_a_folder_beside_the_definition_lies_in_the_workspace(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    (folder / "empty").mkdir(parents=True)
    (folder / "members.json").write_text('{"members": [{"name": "Ada", "phone": "1"}]}')
    (folder / "logo.bin").write_bytes(bytes(range(256)))
    definition = tmp_path / "loans.yaml"
    definition.write_text(
        f"command: python {PROGRAMS / 'loan_server.py'}\nfixtures: {{default: {{folder: shop}}}}\n"
    )
    config = load_server(definition)

    async def run() -> None:
        async with open_server(config) as server:
            assert (await server.call("member_phone", {"name": "Ada"})).text == "Ada: 1"
            assert await server.sandbox.read_file("logo.bin") == bytes(range(256))
            assert not (await server.sandbox.exec(["test", "-d", "empty"])).exit_code

    asyncio.run(run())
    (folder / "members.json").write_text('{"members": []}')
    assert load_server(definition).identity() != config.identity()


def test_a_path_is_known_by_its_parts() -> None:
    shown = ["Put the list into a new folder called trips.", "Allowed: /workspace/files"]
    assert derivable._is_path_of("/workspace/files/trips", shown)
    assert not derivable._is_path_of("/workspace/files/tours", shown)
    assert not derivable._is_path_of("trips", shown), "one word is no path"
