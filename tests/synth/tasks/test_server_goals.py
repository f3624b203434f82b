"""Goals found on a server that nobody has written goals for: one with SQLite, JSON and memory."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from records.digest import digest
from records.tables.schemas import Row
from sandboxes.mcp.importing import import_server
from sandboxes.mcp.launch import server_of_command
from sandboxes.mcp.servers import ServerConfig, ServerGoal
from sandboxes.mcp.session import open_server
from synth.rubrics.built_in import BUILT_IN, EpisodeCall, episode_of, state_changes
from synth.tasks.on_server import NO_VARIANTS
from synth.tasks.proof.proving import reference_messages
from synth.tasks.servers.config import ServerGoalsConfig
from synth.tasks.servers.drafting import draft_for_server
from synth.tasks.servers.finding import find_goals
from synth.tasks.servers.proving import prove_on_server

pytestmark = pytest.mark.usefixtures("sandboxed")

PROGRAM = Path(__file__).parents[2] / "sandboxes" / "mcp" / "loan_server.py"
LOANS = server_of_command(f"python {PROGRAM}")

Calls = list[tuple[str, dict[str, Any]]]


def proposal(
    goal: str,
    calls: Calls,
    said: Mapping[str, Any],
    *,
    told: tuple[tuple[int, str], ...] = (),
    seen_by: Calls = (),  # type: ignore[assignment]
    form: str = "plain",
    twin: tuple[Calls, Calls] = ([], []),
) -> dict[str, Any]:
    return {
        "goal": goal,
        "form": form,
        "calls": [{"tool": tool, "arguments": arguments} for tool, arguments in calls],
        "said": [{"label": label, "value": value} for label, value in said.items()],
        "told": [{"call": call, "label": label} for call, label in told],
        "twin": {
            side: [{"tool": tool, "arguments": arguments} for tool, arguments in calls]
            for side, calls in zip(("before", "calls"), twin, strict=True)
        },
        "seen_by": [{"tool": tool, "arguments": arguments} for tool, arguments in seen_by],
    }


LEND = proposal(
    "Lend the tile cutter to Ines Falk for 3 days.",
    [
        ("search_items", {"text": "tile cutter"}),
        ("lend_item", {"item_id": 3, "member": "Ines Falk", "days": 3}),
    ],
    {"item": "tile cutter", "member": "Ines Falk", "days": 3},
)
PHONE = proposal(
    "Tell me the phone number of Otto Reyes.",
    [("member_phone", {"name": "Otto Reyes"})],
    {"member": "Otto Reyes"},
    told=((0, "phone number"),),
)
NOTICE = proposal(
    "Put up a notice that says 'Closed on Friday'.",
    [("post_news", {"text": "Closed on Friday"})],
    {"text": "Closed on Friday"},
    seen_by=[("read_news", {})],
)
MEMBER = proposal(
    "Enter Pia Holm, phone 555-0199, of Linz, as a member.",
    [("add_member", {"name": "Pia Holm", "phone": "555-0199", "city": "Linz"})],
    {"name": "Pia Holm", "phone": "555-0199", "city": "Linz"},
)
DEAREST = proposal(
    "Lend the dearest thing with 'cutter' or 'cleaner' in its name to Otto Reyes for 2 days.",
    [
        ("search_items", {"text": "cutter"}),
        ("search_items", {"text": "cleaner"}),
        ("lend_item", {"item_id": 4, "member": "Otto Reyes", "days": 2}),
    ],
    {"first word": "cutter", "second word": "cleaner", "member": "Otto Reyes", "days": 2},
    form="conditional",
    twin=(
        [("lend_item", {"item_id": 4, "member": "Ines Falk", "days": 9})],
        [
            ("search_items", {"text": "cutter"}),
            ("lend_item", {"item_id": 3, "member": "Otto Reyes", "days": 2}),
        ],
    ),
)
UNSHOWN = proposal(
    "Lend the cheapest drill to Otto Reyes for 5 days.",
    [
        ("search_items", {"text": "drill"}),
        ("lend_item", {"item_id": 1, "member": "Otto Reyes", "days": 5}),
    ],
    {"item": "drill", "member": "Otto Reyes", "days": 5},
    form="chosen",
    twin=(
        [("post_news", {"text": "closed"})],
        [
            ("search_items", {"text": "cordless drill"}),
            ("lend_item", {"item_id": 1, "member": "Otto Reyes", "days": 5}),
        ],
    ),
)
FAULTY = {
    "plan_fails": proposal(
        "Tell me the phone number of Ada Lund.",
        [("member_phone", {"name": "Ada Lund"})],
        {"member": "Ada Lund"},
        told=((0, "phone number"),),
    ),
    "unknown_tool": proposal("Burn it.", [("burn", {})], {}),
    "underivable_argument": proposal(
        "Tell me the phone number of the member in Brno.",
        [("member_phone", {"name": "Ines Falk"})],
        {},
        told=((0, "phone number"),),
    ),
    "not_said": proposal(
        "Enter a new member.",
        [("add_member", {"name": "Uli Mann", "phone": "555-0142", "city": "Bonn"})],
        {"name": "Uli Mann", "phone": "555-0142", "city": "Bonn"},
    ),
    "no_effect": proposal(
        "Put up a notice that says 'Back at noon'.",
        [("post_news", {"text": "Back at noon"})],
        {"text": "Back at noon"},
        seen_by=[("list_loans", {})],
    ),
    "repeats": PHONE,
    "nothing_told": proposal(
        "Look whether anything is on the board.",
        [("read_news", {})],
        {},
        told=((0, "notice"),),
    ),
}


class Generator:
    """Answers from a list, by the name of the wanted schema."""

    def __init__(self, goals: list[dict[str, Any]], told: Mapping[str, list[str]]) -> None:
        self._goals, self._told = goals, told
        self.prompts: list[str] = []

    async def structured(self, role: str, messages: Any, **asked: Any) -> Any:
        self.prompts.append(messages[-1]["content"])
        if asked["name"] == "calls":
            return {"calls": [{"tool": "search_items", "arguments": {"text": "drill"}}]}
        if asked["name"] == "goals":
            goals, self._goals = self._goals, []
            return {"goals": goals}
        block = self.prompts[-1].split("```json\n")[1].split("\n```")[0]
        return {
            "goals": [
                {
                    "number": one["number"],
                    "fault": "",
                    "told": self._told.get(one["goal"], []),
                    "other_fits": True,
                }
                for one in json.loads(block)
            ]
        }


async def found(config: ServerConfig, goals: list[dict[str, Any]]) -> tuple[list[Row], Any, Any]:
    tools = {row["name"]: row for row in await import_server(config)}
    generator = Generator(goals, {PHONE["goal"]: ["555-0164"]})
    rows = await find_goals(
        config,
        tools,
        generator,  # type: ignore[arg-type]
        item_id="item",
        settings=ServerGoalsConfig(rounds=2),
        definition="definition",
        model="model",
        open_fresh=open_server,
    )
    return rows, tools, generator


@pytest.mark.slow
def test_goals_are_kept_by_what_executing_them_shows() -> None:
    rows, _, generator = asyncio.run(found(LOANS, [LEND, PHONE, NOTICE, MEMBER, *FAULTY.values()]))
    by_goal = {row["proposed"]["goal"]: row for row in rows if row["drop_reason"] is None}
    assert {goal: row["state_read_from"] for goal, row in by_goal.items()} == {
        LEND["goal"]: "workspace",
        PHONE["goal"]: "none",
        NOTICE["goal"]: "calls",
        MEMBER["goal"]: "workspace",
    }
    lent = ServerGoal.model_validate(by_goal[LEND["goal"]]["goal"])
    assert lent.volatile == {"loans.db:loan": ("token",)}
    dropped = {row["drop_reason"]: row for row in rows if row["drop_reason"]}
    assert set(dropped) == set(FAULTY)
    assert all(row["goal"] is None for row in dropped.values())
    assert "cordless drill" in generator.prompts[1], "answers and workspace are shown"
    assert all(row["drop_reason"] in generator.prompts[-1] for row in dropped.values()), (
        "the second round is told what was not kept"
    )


@pytest.mark.slow
def test_what_was_dropped_may_come_again_mended_even_after_it_came_unmended() -> None:
    unsaid = {**PHONE, "said": [{"label": "days", "value": 12}]}
    rows, _, _ = asyncio.run(found(LOANS, [unsaid, unsaid, PHONE, PHONE]))
    assert [row["drop_reason"] for row in rows] == ["not_said", "repeats", "repeats", None], (
        "those that stand are read last"
    )


@pytest.mark.slow
def test_a_form_is_kept_where_another_world_shows_that_the_state_decides() -> None:
    rows, _, _ = asyncio.run(found(LOANS, [DEAREST, UNSHOWN]))
    dearest, unshown = rows
    assert (dearest["form"], dearest["goal"]["form"]) == ("conditional", "conditional")
    assert dearest["goal"]["twin"] == DEAREST["twin"]
    assert unshown["drop_reason"] is None
    assert (unshown["form"], unshown["goal"]["twin"]) == ("plain", None), "it comes to the same"


@pytest.mark.slow
def test_tasks_from_found_goals_pass_on_their_plan_and_fail_on_anything_else() -> None:
    async def run() -> None:
        rows, tools, _ = await found(LOANS, [LEND, PHONE, NOTICE, MEMBER])
        goals = tuple(ServerGoal.model_validate(row["goal"]) for row in rows if row["goal"])
        config = LOANS.model_copy(update={"goals": goals})
        seen: set[str] = set()
        for number in range(6):
            made = draft_for_server(
                config,
                tools,
                digest("loans", number),
                count=1 + number % 3,
                disclosure="mixed",
                variants=NO_VARIANTS,
            )
            async with open_server(config) as server:
                draft, proof = await prove_on_server(made, server)
            seen.add(draft.proved["state_read_from"])
            writes = any(goal.writes for goal in draft.goals)
            idle = BUILT_IN.check_all(proof.rubric, episode_of(reference_messages(draft), []))
            done = {name for name, verdict in idle.items() if verdict.passed is False}
            assert bool(done & {"state", "called_1"}) == writes
        assert seen == {"workspace", "calls"}

    asyncio.run(run())


@pytest.mark.slow
def test_an_agent_that_lends_for_another_time_fails_and_one_in_another_order_passes() -> None:
    async def run() -> None:
        rows, tools, _ = await found(LOANS, [LEND, MEMBER])
        goals = tuple(ServerGoal.model_validate(row["goal"]) for row in rows)
        config = LOANS.model_copy(update={"goals": goals})
        made = next(
            made
            for number in range(40)
            if len(
                (
                    made := draft_for_server(
                        config,
                        tools,
                        digest("both", number),
                        count=1 + number % 3,
                        disclosure="at_once",
                        variants=NO_VARIANTS,
                    )
                ).user_goals
            )
            == 2
        )
        async with open_server(config) as server:
            draft, proof = await prove_on_server(made, server)

        async def verdict(*calls: tuple[str, dict[str, Any]]) -> bool | None:
            async with open_server(config) as server:
                before = await server.state()
                played = [
                    EpisodeCall(
                        tool=tool,
                        arguments=arguments,
                        observation=(await server.call(tool, arguments)).text,
                    )
                    for tool, arguments in calls
                ]
                changes = state_changes(before, await server.state())
            episode = episode_of(reference_messages(draft), played, changes=changes)
            return BUILT_IN.check_all(proof.rubric, episode)["state"].passed

        lend, enter = LEND["calls"][1], MEMBER["calls"][0]
        right = [(call["tool"], call["arguments"]) for call in (enter, lend)]
        assert await verdict(*right)
        assert await verdict(*reversed(right))
        assert not await verdict(right[0])
        assert not await verdict(right[0], ("lend_item", {**right[1][1], "days": 4}))
        assert not await verdict(*right, ("lend_item", {"item_id": 1, "member": "Ines Falk"}))

    asyncio.run(run())
