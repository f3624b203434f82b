"""Agents, personas and tasks. A task is kept only if its reference plan passes its own rubric."""

from prefect import flow

from flows.runtime.data_root import ConfigParameter
from flows.runtime.joined_run import run_stages
from flows.runtime.settings import DEFAULT_DATASET, DatasetParameter
from synth.engine.plans import StageReport
from synth.pipeline.config import RunConfig
from synth.pipeline.stages import AgentStage, PersonaStage, ScreeningStage, TaskStage


@flow(name="build-tasks", flow_run_name="build-tasks-{config.name}")
async def build_tasks(
    config: ConfigParameter[RunConfig] = RunConfig(), dataset: DatasetParameter = DEFAULT_DATASET
) -> list[StageReport]:
    """Write `agents`, `personas` and `tasks` for the tools that the dataset holds."""
    return await run_stages(config, dataset, [AgentStage, PersonaStage, ScreeningStage, TaskStage])
