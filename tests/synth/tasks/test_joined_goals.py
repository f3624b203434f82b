"""Goals on joined servers: kept where one part shows what another is given, and checked on both."""

import asyncio
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from records.tables.schemas import Row
from sandboxes.mcp.importing import import_server
from sandboxes.mcp.servers import ServerConfig, ServerGoal, builtin_servers
from sandboxes.mcp.warm import WarmServers
from synth.rubrics.built_in import BUILT_IN, EpisodeCall, episode_of, state_changes
from synth.tasks.on_server import NO_VARIANTS
from synth.tasks.proof.proving import UnprovedError, reference_messages
from synth.tasks.servers.config import ServerGoalsConfig
from synth.tasks.servers.drafting import draft_for_server
from synth.tasks.servers.finding import find_goals
from synth.tasks.servers.proving import prove_on_server
from synth.tasks.servers.shared import check_shared
from tests.sandboxes.mcp.joined_work import WARD, joined_in, with_book
from tests.synth.tasks.test_server_goals import Generator, proposal

OMAR = proposal(
    "Note on Mara Dietz the phone number that the clinic has of Omar Haddad.",
    [
        ("find_patients", {"name": "Omar Haddad"}),
        ("set_note", {"name": "Mara Dietz", "note": "555-0187"}),
    ],
    {"patient": "Omar Haddad", "name": "Mara Dietz"},
)
DANA = proposal(
    "Note on Otto Reyes the phone number that the clinic has of Dana Reyes.",
    [
        ("find_patients", {"name": "Dana Reyes"}),
        ("set_note", {"name": "Otto Reyes", "note": "555-0141"}),
    ],
    {"patient": "Dana Reyes", "name": "Otto Reyes"},
)
ONE_PART = proposal(
    "Note on Mara Dietz that she called.",
    [("set_note", {"name": "Mara Dietz", "note": "she called"})],
    {"name": "Mara Dietz", "note": "she called"},
)
NOTHING_SHARED = proposal(
    "Tell me the phone number of the patient Omar Haddad, and note on Mara Dietz 'owes a book'.",
    [
        ("find_patients", {"name": "Omar Haddad"}),
        ("set_note", {"name": "Mara Dietz", "note": "owes a book"}),
    ],
    {"patient": "Omar Haddad", "name": "Mara Dietz", "note": "owes a book"},
    told=((0, "phone number"),),
)


@pytest.mark.slow
@pytest.mark.usefixtures("sandboxed")
def test_shared_goals_alone_are_kept_and_their_tasks_look_at_both_parts(tmp_path: Path) -> None:
    with_book(tmp_path)
    ward = joined_in(tmp_path, *WARD)

    async def run() -> None:
        async with WarmServers(live=1) as warm:
            goals, tools = await kept(ward, warm)
            await judged(ward.model_copy(update={"goals": goals}), tools, warm)
            assert warm.starts == 1

    asyncio.run(run())


async def kept(
    ward: ServerConfig, warm: WarmServers
) -> tuple[tuple[ServerGoal, ...], dict[str, Row]]:
    tools = {row["name"]: row for row in await import_server(ward)}
    generator = Generator([OMAR, DANA, ONE_PART, NOTHING_SHARED], {})
    rows = await find_goals(
        ward,
        tools,
        generator,  # type: ignore[arg-type]
        item_id="item",
        settings=ServerGoalsConfig(rounds=2, look_calls=0),
        definition="definition",
        model="model",
        open_fresh=warm.open,
    )
    assert {row["proposed"]["goal"]: row["drop_reason"] for row in rows} == {
        OMAR["goal"]: None,
        DANA["goal"]: None,
        ONE_PART["goal"]: "not_shared",
        NOTHING_SHARED["goal"]: "not_shared",
    }
    assert "all calls are of contacts" in generator.prompts[-1]
    assert "## Places" in generator.prompts[0]
    assert '"part": "contacts"' in generator.prompts[0]
    return tuple(ServerGoal.model_validate(row["goal"]) for row in rows if row["goal"]), tools


async def judged(config: ServerConfig, tools: dict[str, Row], warm: WarmServers) -> None:
    drafts = (
        draft_for_server(
            config,
            tools,
            f"both-{number}",
            count=4,
            disclosure="at_once",
            variants=NO_VARIANTS,
        )
        for number in range(40)
    )
    made = next(made for made in drafts if len(made.user_goals) == 2)
    async with warm.open(config) as server:
        draft, proof = await prove_on_server(made, server)

    async def verdict(*calls: dict[str, Any]) -> bool | None:
        async with warm.open(config) as server:
            before = await server.state()
            played = [
                EpisodeCall(
                    tool=call["tool"],
                    arguments=call["arguments"],
                    observation=(await server.call(call["tool"], call["arguments"])).text,
                )
                for call in calls
            ]
            changes = state_changes(before, await server.state())
        episode = episode_of(reference_messages(draft), played, changes=changes)
        return BUILT_IN.check_all(proof.rubric, episode)["state"].passed

    def noted(name: str, note: str) -> dict[str, Any]:
        return {"tool": "set_note", "arguments": {"name": name, "note": note}}

    right = noted("Mara Dietz", "555-0187"), noted("Otto Reyes", "555-0141")
    paid = {"tool": "record_payment", "arguments": {"patient_id": "PT-1002", "amount": 45}}
    assert await verdict(*right)
    assert await verdict(*reversed(right))
    assert not await verdict(right[0])
    assert not await verdict(right[0], noted("Otto Reyes", "555-0187"))
    assert not await verdict(*right, paid)


TODAY = builtin_servers()["time"].clock[:10]
TOOLS: dict[str, Row] = {
    name: {"annotations": {"part": part}, "input_schema": schema}
    for name, part, schema in (
        ("find", "git", {}),
        ("list", "git", {}),
        ("look", "time", {}),
        ("set", "time", {"properties": {"kind": {"enum": ["urgent"]}}}),
    )
}


def call(tool: str, observation: str = "", **arguments: Any) -> EpisodeCall:
    return EpisodeCall(tool=tool, arguments=arguments, observation=observation)


@pytest.mark.parametrize(
    ("calls", "is_shared"),
    [
        ([call("find", "box 412"), call("set", box=412)], True),
        ([call("find", "total: 9.25 USD"), call("set", amount=9.25)], False),
        ([call("find", "total: 19.25 USD"), call("set", amount=19.25)], True),
        ([call("find", "box 4127"), call("set", box=412)], False),
        ([call("find", "box 7"), call("set", box=7)], False),
        ([call("find", "open: true"), call("set", open=True)], False),
        ([call("find", '{"name": "Mara Dietz"}'), call("set", who={"name": "Mara Dietz"})], True),
        ([call("find", "Mara Dietzler"), call("set", who="Mara Dietz")], False),
        ([call("find", "state ok"), call("set", state="ok")], False),
        ([call("find", "Ada Lund"), call("set", who="Ada Lund")], False),  # the goal says so
        ([call("set", who="Mara Dietz"), call("find", "Mara Dietz")], False),  # comes too late
        ([call("find", "kind: urgent"), call("set", kind="urgent")], False),
        ([call("find", TODAY), call("set", day=TODAY)], False),
        ([call("find", "box 412"), call("look", "box 412"), call("set", box=412)], False),
        ([call("find", "box 412"), call("look", box=412), call("list", "")], True),
        ([call("find", "box 412"), call("list", box=412)], False),
    ],
)
def test_a_value_is_shared_that_only_another_part_shows_before_it_is_needed(
    tmp_path: Path, calls: list[EpisodeCall], is_shared: bool
) -> None:
    config = joined_in(tmp_path, "git", "time")
    proposed = {"goal": "Do it for Ada Lund.", "said": []}
    expected = nullcontext() if is_shared else pytest.raises(UnprovedError, match="not_shared")
    with expected:
        check_shared(config, proposed, calls, TOOLS)
