"""Agents, personas and tasks. A task is kept only if its reference plan passes its own rubric."""

from prefect import flow

from flows.joining import joined_run
from flows.settings import DEFAULT_DATASET, DatasetParameter
from flows.shard_tasks import run_stage
from synth.config import RunConfig
from synth.pipeline import AgentStage, PersonaStage, ScreeningStage, TaskStage
from synth.run import StageReport


@flow(name="build-tasks", flow_run_name="build-tasks-{config.name}")
async def build_tasks(
    config: RunConfig = RunConfig(), dataset: DatasetParameter = DEFAULT_DATASET
) -> list[StageReport]:
    """Write `agents`, `personas` and `tasks` for the tools that the dataset holds."""
    async with joined_run(config, dataset) as run:
        stages = (AgentStage, ScreeningStage, PersonaStage, TaskStage)
        return [await run_stage(run, stage(run)) for stage in stages]
