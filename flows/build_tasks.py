"""Agents, personas and tasks. A task is kept only if its reference plan passes its own rubric."""

from prefect import flow

from flows.running import open_run
from flows.settings import DEFAULT_DATASET
from flows.shard_tasks import run_stage
from synth.config import RunConfig
from synth.pipeline import AgentStage, PersonaStage, TaskStage
from synth.run import StageReport


@flow(name="build-tasks", flow_run_name="build-tasks-{config.name}")
async def build_tasks(
    config: RunConfig = RunConfig(), dataset: str = DEFAULT_DATASET
) -> list[StageReport]:
    """Write `agents`, `personas` and `tasks` for the tools that the dataset holds."""
    async with open_run(config, dataset, command="build-tasks") as run:
        return [await run_stage(run, stage(run)) for stage in (AgentStage, PersonaStage, TaskStage)]
