"""Operators on tasks of a real server: each child is proved on a fresh one, and differs from its
parent in what the operator says."""

import asyncio
from typing import Any

import pytest

from records.tables.schemas import Row
from sandboxes.mcp.servers import ServerGoal
from sandboxes.mcp.warm import WarmServers
from synth.tasks.difficulty import DerivedTask, DifficultyConfig, Operator
from synth.tasks.operators import Deriving, can_have
from synth.tasks.sources import TaskSources
from synth.tasks.stage import Dropped, make_task, num_agents, num_personas, plan_tasks
from tests.synth.authors import GENERATOR
from tests.synth.task_cases import domains
from tests.synth.tasks.test_server_goals import LEND, LOANS, MEMBER, PHONE, found
from tests.synth.tasks.test_task_stage import PLAIN, BriefWriter, persona
from tool_specs.domains.catalogue import domain_id, tool_rows

pytestmark = [pytest.mark.usefixtures("sandboxed"), pytest.mark.slow]

OPERATORS: tuple[Operator, ...] = ("longer", "shorter", "less_said", "more_said", "more_tools")


def test_children_keep_the_server_and_change_what_their_operator_says() -> None:
    async def run() -> dict[str, list[tuple[Row, Row]]]:
        rows, tools, _ = await found(LOANS, [LEND, PHONE, MEMBER])
        goals = tuple(ServerGoal.model_validate(row["goal"]) for row in rows)
        beside = {domain_id(domain): domain for domain in domains()[:3]}
        async with WarmServers() as warm:
            known = {row["tool_id"]: row for row in tools.values()}
            known |= {t["tool_id"]: t for domain in beside.values() for t in tool_rows(domain)}
            sources = TaskSources(
                tools=known,
                domains=beside,
                servers={LOANS.name: LOANS.model_copy(update={"goals": goals})},
                open_server=warm.open,
            )
            agent = {
                "agent_id": "agent-0",
                "domain_id": None,
                "server": LOANS.name,
                "tool_ids": [tool["tool_id"] for tool in tools.values()],
                "split": "train",
            }
            settings = PLAIN
            planned = plan_tasks(
                settings,
                [agent] * num_agents(3, settings),
                [persona(i) for i in range(num_personas(3, settings))],
                seed=1,
                count=3,
                generator=GENERATOR,
            )
            parents: list[Row] = []
            for plan in planned:
                made = await make_task(
                    plan, BriefWriter().llm, config=settings, sources=sources, generator=GENERATOR
                )
                if not isinstance(made, Dropped):
                    parents.append(made)
            children: dict[str, list[tuple[Row, Row]]] = {name: [] for name in OPERATORS}
            for parent in parents:
                deriving = Deriving(
                    {parent["task_id"]: parent},
                    {"agent-0": agent},
                    {f"persona-{i}": persona(i) for i in range(64)},
                    config=settings,
                    difficulty=DifficultyConfig(added_tools=3),
                    sources=sources,
                    generator=GENERATOR,
                )
                for operator in OPERATORS:
                    if not can_have(operator, parent, agent, known):
                        continue
                    child = DerivedTask(f"child-{operator}", parent["task_id"], operator, 1)
                    made = await deriving.make(child, BriefWriter().llm)
                    if not isinstance(made, Dropped):
                        children[operator].append((parent, made["tasks"][0]))
        return children

    children = asyncio.run(run())
    assert all(children[operator] for operator in ("longer", "shorter", "more_tools")), children
    assert children["less_said"] or children["more_said"]
    changed: dict[str, Any] = {
        "longer": lambda p, c: len(c["user_brief"]["wishes"]) > len(p["user_brief"]["wishes"]),
        "shorter": lambda p, c: len(c["reference_plan"]) < len(p["reference_plan"]),
        "less_said": lambda p, c: c["num_hidden"] > p["num_hidden"],
        "more_said": lambda p, c: c["num_hidden"] == 0 < p["num_hidden"],
        "more_tools": lambda p, c: c["num_distractors"] > p["num_distractors"],
    }
    for operator, pairs in children.items():
        for parent, child in pairs:
            assert changed[operator](parent, child), operator
            same = ("server", "initial_state", "seed", "persona_id", "variant", "split")
            assert [child[c] for c in same] == [parent[c] for c in same]
            assert (child["operator"], child["parent_task_id"]) == (operator, parent["task_id"])
            assert child["proof"]["state_read_from"] in ("workspace", "none")
