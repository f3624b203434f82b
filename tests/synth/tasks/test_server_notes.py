"""Notes of calls are found by what reading changes: they are not compared, and all else is."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from records.digest import digest
from records.tables.schemas import Row
from sandboxes.mcp.importing import source_of
from sandboxes.mcp.launch import server_of_command
from sandboxes.mcp.servers import GoalCall, ServerConfig, ServerGoal
from sandboxes.mcp.session import open_server
from synth.rubrics.built_in import BUILT_IN, EpisodeCall, episode_of, state_changes
from synth.tasks.on_server import NO_VARIANTS
from synth.tasks.proof.proving import UnprovedError, reference_messages
from synth.tasks.servers.drafting import draft_for_server
from synth.tasks.servers.notes import NotedCall, Notes, find_notes, notes_of
from synth.tasks.servers.proving import prove_on_server
from synth.tasks.servers.trying import try_goal
from tool_specs.importing.tool_lists import rows_of_answer

PROGRAM = Path(__file__).parents[2] / "sandboxes" / "mcp" / "noting_server.py"

FIND = GoalCall(tool="find_article", arguments={"text": "dough"})
READ = GoalCall(tool="read_article", arguments={"article_id": 2})
PHONE = GoalCall(tool="member_phone", arguments={"name": "Ines Falk"})
LEND = GoalCall(tool="lend", arguments={"article_id": 1, "member": "Ines Falk"})
MOVE = GoalCall(tool="move", arguments={"article_id": 1, "shelf": "A1"})
FEATURE = GoalCall(tool="feature", arguments={"article_id": 2})
WRONG = GoalCall(tool="member_phone", arguments={"name": "Nobody"})
CALLS = (FIND, READ, WRONG, PHONE, LEND, MOVE)


def noting(*modes: str) -> ServerConfig:
    return server_of_command(f"python {PROGRAM} {' '.join(modes)}")


async def tools_and_notes(
    config: ServerConfig, calls: tuple[GoalCall, ...] = CALLS, showing: tuple[str, ...] = ()
) -> tuple[dict[str, Row], Notes]:
    async with open_server(config) as server:
        rows = rows_of_answer(await server.list_tools(), source_of(config))
        tools = {row["name"]: row for row in rows}
        return tools, await find_notes(server, tools, calls, showing)


EVENTS = {"library.db:events": ()}
VIEWS = {"library.db:article": ("last_read_at", "views")}
JSON = {"requests.json": ()}


@pytest.mark.slow
@pytest.mark.usefixtures("sandboxed")
@pytest.mark.parametrize(
    ("modes", "calls", "showing", "volatile"),
    [
        (("views", "hints"), CALLS, (), VIEWS),
        (("views",), (FIND, READ, PHONE), (), {}),
        (("ledger",), CALLS, ("find_article", "feature"), {}),
        (("ledger",), (LEND, MOVE, FEATURE), ("feature", "move"), {}),
    ],
)
def test_what_reading_changes_is_a_note_and_what_only_writing_changes_is_none(
    modes: tuple[str, ...],
    calls: tuple[GoalCall, ...],
    showing: tuple[str, ...],
    volatile: dict[str, Any],
) -> None:
    found = asyncio.run(tools_and_notes(noting(*modes), calls, showing))[1]
    assert (found.volatile, found.rows) == (volatile, {})


@pytest.mark.slow
@pytest.mark.usefixtures("sandboxed")
def test_more_reading_in_another_order_passes_and_a_row_too_many_fails() -> None:
    async def run() -> None:
        config = noting("events", "json", "text", "views")
        tools, found = await tools_and_notes(config, showing=("read_article",))
        assert found.volatile == {**EVENTS, **VIEWS, **JSON}
        assert found.rows == {"file": ("requests.json", "requests.txt")}
        wanted = ServerGoal(
            id="lend",
            wish="Lend the article on sourdough to Ines Falk.",
            calls=(FIND, LEND),
            labels={"0.text": "title", "1.member": "member"},
        )
        tried = await try_goal(config, wanted, tools, open_server, found)
        assert [change["entity"] for change in tried.changes] == [
            "library.db:ledger",
            "library.db:loan",
        ]
        config = config.model_copy(update={"goals": (tried.goal,)})
        made = draft_for_server(
            config, tools, digest("lend"), count=1, disclosure="at_once", variants=NO_VARIANTS
        )
        async with open_server(config) as server:
            draft, proof = await prove_on_server(made, server)

        async def passes(*calls: GoalCall) -> bool | None:
            async with open_server(config) as server:
                before = await server.state()
                played = [
                    EpisodeCall(
                        tool=call.tool,
                        arguments=call.arguments,
                        observation=(await server.call(call.tool, call.arguments)).text,
                    )
                    for call in calls
                ]
                changes = state_changes(before, await server.state())
            episode = episode_of(reference_messages(draft), played, changes=changes)
            return BUILT_IN.check_all(proof.rubric, episode)["state"].passed

        ways = ((READ, PHONE, LEND, READ), (FIND, LEND, LEND))
        assert await asyncio.gather(*(passes(*way) for way in ways)) == [True, False]
        same = ServerGoal(id="feature", wish="Feature the knots.", calls=(FEATURE,))
        with pytest.raises(UnprovedError, match=r"reading changes library\.db:article, too"):
            await try_goal(config, same, tools, open_server, found)

    asyncio.run(run())


def write(entity: str, answer: str, *, row: str) -> NotedCall:
    """A call of a tool that writes a row, on a server that tells of Ines Falk."""
    call = GoalCall(tool=f"add_{entity}_{row[0]}")
    change = {"op": "create", "entity": entity, "id": row, "before": None, "after": {"n": 1}}
    return NotedCall(call, answer, [change], {"member": {"Ines Falk": {"city": "Brno"}}})


def test_two_tools_that_write_into_one_table_do_not_make_it_a_log() -> None:
    """Their answers are dull, as those of writing tools are: nothing is told."""
    config = ServerConfig(name="desk", command=("python",))
    made = [[write("loan", "done", row=f"{t}{n}") for n in range(2)] for t in "abc"]
    assert notes_of(config, {}, made) == Notes()
    telling = [write("loan", "done for Ines Falk", row=f"d{n}") for n in range(2)]
    assert not notes_of(config, {}, [*made, telling]).volatile


def test_rows_that_reading_takes_away_and_makes_anew_stay_compared() -> None:
    """Of rows that are told by all that they hold, each is another one once a field is."""
    config = ServerConfig(name="desk", command=("python",))
    before = {"op": "delete", "entity": "note.json", "id": "a | 1", "before": {}, "after": None}
    after = before | {"op": "create", "id": "a | 2", "before": None, "after": {}}
    call = GoalCall(tool="read")
    made = [[NotedCall(call, "a", [before, after], {})]]
    tools = {"read": {"annotations": {"readOnlyHint": True}}}
    assert not notes_of(config, tools, made).volatile
