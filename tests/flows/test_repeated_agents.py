"""Near-duplicates among agents are looked for once, and again when there are other agents."""

import asyncio
from pathlib import Path

from flows.runtime.running import open_run
from synth.pipeline.stages import AgentStage, CatalogueStage, agent_plans, repeats_of
from tests.flows.pipeline_work import SMALL

TWO = SMALL.model_copy(update={"domains": ("clinic_desk",), "num_tasks": 16})
"""Of which two agents take eight each."""


async def found_in(folder: Path) -> None:
    async with open_run(TWO, str(folder), command="test") as run:
        for make_stage in (CatalogueStage, AgentStage):
            stage = make_stage(run)
            plan = run.plan(stage)
            for index in plan.open_shards:
                await run.run_shard(stage, plan, index)
        first, second = (plan.item_id for plan in agent_plans(run))
        before = repeats_of(run, agent_plans(run))
        assert repeats_of(run, agent_plans(run)) is before
        assert before == {}

        row = next(r for r in run.dataset.rows("agents") if r["agent_id"] == first)
        again = {"agents": [row | {"agent_id": second}]}
        run.dataset.commit(
            run_id=run.run_id, stage="agents", shard=0, tables=again, supersedes=True
        )
        assert repeats_of(run, agent_plans(run)) == {second: first}
        assert repeats_of(run, agent_plans(run)[:1]) == {}


def test_repeats_are_looked_for_again_only_among_other_agents(tmp_path: Path) -> None:
    asyncio.run(found_in(tmp_path / "d"))
