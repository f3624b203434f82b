"""Near-duplicates among agents are looked for once, and again when there are other agents."""

import asyncio
from pathlib import Path

from flows.runtime.open_run import open_run
from synth.pipeline.stages import AgentStage, CatalogueStage, ScreeningStage
from tests.flows.pipeline_work import SMALL

TWO = SMALL.model_copy(update={"domains": ("clinic_desk",), "num_tasks": 16})
"""Of which two agents take eight each."""


async def found_in(folder: Path) -> None:
    async with open_run(TWO, str(folder), command="test") as run:
        for make_stage in (CatalogueStage, AgentStage):
            await run.run_stage(make_stage(run))
        first, second = run.ids_of("agents")
        stage = ScreeningStage(run)
        before = stage.repeated_agents()
        assert stage.repeated_agents() is before
        assert ScreeningStage(run).repeated_agents() is before
        assert before == {}

        row = next(r for r in run.dataset.rows("agents") if r["agent_id"] == first)
        again = {"agents": [row | {"agent_id": second}]}
        run.dataset.commit(
            run_id=run.run_id, stage="agents", shard=0, tables=again, supersedes=True
        )
        assert stage.repeated_agents() == {second: first}
        run.planned["agents"] = [first]
        assert stage.repeated_agents() == {}


def test_repeats_are_looked_for_again_only_among_other_agents(tmp_path: Path) -> None:
    asyncio.run(found_in(tmp_path / "d"))
