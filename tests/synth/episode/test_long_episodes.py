"""Ten wishes of one matter: the user brings each of them, and the limits leave room."""

import asyncio
from pathlib import Path

from offline_llm.app import create_app
from records.store.journal import ShardJournal
from records.tables.schemas import Row
from synth.episode.rollout import RolloutConfig, plan_rollouts, run_rollout
from synth.episode.tools.executors import Catalogue
from synth.llm.client import LLM
from synth.llm.gateway import Gateway
from synth.tasks.config import TaskConfig
from synth.tasks.forms.forms import ALL_PLAIN
from synth.tasks.goals.variants import VariantShares
from synth.tasks.sources import TaskSources
from synth.tasks.stage import TaskPlan, make_task
from tests.synth.authors import GENERATOR, with_offline
from tests.synth.clinic import PERSONA, QUIET
from tests.synth.rollout_work import roles
from tool_specs.domains.catalogue import domain_id, tool_rows
from tool_specs.domains.domain import load_domains

WORLD = load_domains(["brokerage_desk"])[0]
TOOLS = {row["tool_id"]: row for row in tool_rows(WORLD)}
AGENT: Row = {
    "agent_id": "agent",
    "domain_id": domain_id(WORLD),
    "server": None,
    "tool_ids": list(TOOLS),
    "split": "train",
    "system_prompt": "You are the desk of a broker.",
}
CONFIG = TaskConfig(
    lengths={"16-40": 1.0},
    forms=ALL_PLAIN,
    variants=VariantShares.model_validate(dict.fromkeys(VariantShares.model_fields, 0.0)),
)
ENOUGH = 9


def long_task(folder: Path) -> Row:
    """The first one with so many wishes."""
    persona = PERSONA | {"disclosure": "at_once", "split": "train"}
    sources = TaskSources(tools=TOOLS, domains={domain_id(WORLD): WORLD}, servers={})
    for number in range(6):
        plan = TaskPlan(item_id=f"long-{number}", agent=AGENT, persona=persona)
        row = with_offline(
            folder / str(number),
            lambda llm, plan=plan: make_task(
                plan, llm, config=CONFIG, sources=sources, generator=GENERATOR
            ),
        )
        if isinstance(row, dict) and len(row["user_brief"]["wishes"]) >= ENOUGH:
            return row
    raise AssertionError("no task with so many wishes")


async def played(folder: Path, task: Row) -> Row:
    config = RolloutConfig(episode=QUIET)
    (item,) = plan_rollouts([task], config=config, roles=roles("offline"))
    catalogue = Catalogue(
        tools=TOOLS,
        agents={"agent": AGENT},
        personas={"persona": PERSONA},
        domains={domain_id(WORLD): WORLD},
        servers={},
    )
    async with Gateway(roles("offline"), offline_app=create_app) as gateway:
        with ShardJournal(folder / "journal.sqlite") as journal:
            llm = LLM(gateway, journal, stage="rollouts", invocation_id="test")
            made = await run_rollout(
                item, llm, journal, catalogue=catalogue, config=config, roles=roles("offline")
            )
    [row] = made.tables["trajectories"]
    return row


def test_the_user_brings_all_of_ten_wishes(tmp_path: Path) -> None:
    task = long_task(tmp_path)
    wishes = task["user_brief"]["wishes"]
    assert task["num_steps"] >= 16
    assert task["num_distinct_tools"] >= 5
    assert task["longest_chain"] >= 4
    row = asyncio.run(played(tmp_path, task))
    assert row["termination_reason"] == "user_done"
    assert row["num_user_turns"] >= len(wishes)
    assert row["num_turns"] <= task["max_turns"] / 2
    assert row["num_tool_calls"] >= task["num_steps"] / 2
