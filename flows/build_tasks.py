"""Agents, personas and tasks. A task is kept only if its reference plan passes its own rubric."""

from prefect import flow

from flows.runtime.joining import joined_run
from flows.runtime.settings import DEFAULT_DATASET, DatasetParameter
from flows.runtime.shard_tasks import run_stage
from synth.engine.plans import StageReport
from synth.pipeline.config import RunConfig
from synth.pipeline.stages import AgentStage, PersonaStage, ScreeningStage, TaskStage


@flow(name="build-tasks", flow_run_name="build-tasks-{config.name}")
async def build_tasks(
    config: RunConfig = RunConfig(), dataset: DatasetParameter = DEFAULT_DATASET
) -> list[StageReport]:
    """Write `agents`, `personas` and `tasks` for the tools that the dataset holds."""
    async with joined_run(config, dataset) as run:
        stages = (AgentStage, ScreeningStage, PersonaStage, TaskStage)
        return [await run_stage(run, stage(run)) for stage in stages]
