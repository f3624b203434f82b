"""Grading and curation: every rubric checked, then what is kept decided over the whole set."""

from prefect import flow

from flows.joining import joined_run
from flows.settings import DEFAULT_DATASET, DatasetParameter
from flows.shard_tasks import run_stage
from synth.config import RunConfig
from synth.pipeline import CurationStage, GradingStage
from synth.run import StageReport


@flow(name="curate", flow_run_name="curate-{config.name}")
async def curate(
    config: RunConfig = RunConfig(), dataset: DatasetParameter = DEFAULT_DATASET
) -> list[StageReport]:
    """Write `verdicts` and `curation` for the trajectories that the dataset holds."""
    async with joined_run(config, dataset) as run:
        return [await run_stage(run, stage(run)) for stage in (GradingStage, CurationStage)]
