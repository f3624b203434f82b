"""Servers that make up ids: each episode finds others, and its replay finds the same."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from records.tables.schemas import Row
from sandboxes.mcp.importing import source_of
from sandboxes.mcp.launch import server_of_command
from sandboxes.mcp.servers import ServerConfig
from sandboxes.mcp.session import open_server
from sandboxes.mcp.warm import WarmServers
from synth.episode.environment import EpisodeEnvironment
from synth.episode.replay import replay_rows
from synth.episode.tools.executors import Catalogue
from tests.synth.clinic import PERSONA, QUIET, ScriptedUser, calls, says
from tool_specs.importing.tool_lists import rows_of_answer

pytestmark = pytest.mark.usefixtures("sandboxed")

PROGRAM = Path(__file__).parents[2] / "sandboxes" / "mcp" / "ticket_server.py"
DESK = server_of_command(f"python {PROGRAM}")
OPEN = ("open_ticket", {"title": "No light in room 4"})
CODE = ("guest_code", {})

TASK: Row = {
    "task_id": "task",
    "agent_id": "agent",
    "persona_id": "persona",
    "domain_id": None,
    "server": DESK.name,
    "variant": "normal",
    "solvable": True,
    "user_brief": {"opening": "Please report the light.", "wishes": [], "facts": []},
    "initial_state": {"fixture": "default"},
    "token_budget": 50_000,
    "max_turns": 20,
    "rubric": {
        "criteria": [
            {
                "id": "goal",
                "kind": "state",
                "words": "The ticket was opened and closed.",
                "weight": 1.0,
                "mandatory": True,
                "check": {
                    "changes": [
                        {
                            "op": "create",
                            "entity": "desk.db:ticket",
                            "match": {"title": OPEN[1]["title"], "state": "closed"},
                        }
                    ],
                    "incidental": [],
                },
            }
        ]
    },
}


async def episode(catalogue: Catalogue, seed: int) -> tuple[Row, list[Row]]:
    """Open a ticket, close it by the id that was answered, and ask for a guest's code twice."""
    env = EpisodeEnvironment(catalogue, QUIET, user=lambda *_: ScriptedUser())
    await env.reset(TASK, seed)
    try:
        step = await env.step(calls(OPEN))
        ticket = json.loads(step.observation[0]["content"])["id"]
        await env.step(calls(("close_ticket", {"ticket_id": ticket}), CODE, CODE, first=1))
        last = await env.step(says("It is reported."))
    finally:
        await env.close()
    trajectory = {
        "trajectory_id": "t",
        "messages": env.state.messages,
        "tools": [],
        "seed": seed,
        "termination_reason": env.state.reason,
        "state_hash_final": env.state.hash_final,
        "objective_reward": last.reward,
    }
    assert last.reward == 1.0
    return trajectory, json.loads(json.dumps([r._asdict() for r in env.state.caller.records]))


@pytest.mark.slow
def test_an_episode_replays_with_its_ids_and_another_has_others() -> None:
    async def run() -> None:
        async with open_server(DESK) as server:
            tools = rows_of_answer(await server.list_tools(), source_of(DESK))
        agent = {
            "agent_id": "agent",
            "tool_ids": [tool["tool_id"] for tool in tools],
            "system_prompt": "You look after a help desk.",
        }
        async with WarmServers(live=1) as warm:
            catalogue = Catalogue(
                agents={"agent": agent},
                personas={"persona": PERSONA},
                tools={tool["tool_id"]: tool for tool in tools},
                domains={},
                servers={DESK.name: DESK},
                open_server=warm.open,
            )
            trajectory, made = await episode(catalogue, 11)
            again = await replay_rows(trajectory, made, TASK, catalogue, QUIET)
            assert again.differences == []
            ids = {call["observation"] for call in made} - {"closed"}
            assert len(ids) == 3, "each helper has its own code"
            other = await replay_rows(trajectory | {"seed": 12}, made, TASK, catalogue, QUIET)
            told = [d for d in other.differences if d.where.endswith(": observation")]
            assert {d.recorded for d in told} == ids | {"closed"}, "the old id is none there"
            assert not {d.replayed for d in told} & ids

    asyncio.run(run())


@pytest.mark.slow
@pytest.mark.parametrize(("changed", "same"), [({}, True), ({"hosts": ("desk.example",)}, False)])
def test_a_server_that_reaches_somebody_is_not_seeded(changed: dict[str, Any], same: bool) -> None:
    config = DESK.model_copy(update={"writes": True, **changed})

    async def ticket(config: ServerConfig) -> str:
        async with open_server(config, {"fixture": "default", "seed": 3}) as server:
            return (await server.call(*OPEN)).text

    async def run() -> tuple[str, str]:
        return await asyncio.gather(ticket(config), ticket(config))

    assert (len({*asyncio.run(run())}) == 1) == same


def test_nor_is_one_that_serves_many_episodes() -> None:
    assert DESK.may_be_seeded
    assert not DESK.model_copy(update={"resettable": True}).may_be_seeded
    assert not DESK.model_copy(update={"secrets": ("DESK_KEY",)}).may_be_seeded
