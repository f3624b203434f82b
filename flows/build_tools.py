"""The catalogue: built-in and own domains, and the tools of real MCP servers, as table rows."""

from prefect import flow

from flows.joining import joined_run
from flows.settings import DEFAULT_DATASET, DatasetParameter
from flows.shard_tasks import run_stage
from synth.config import RunConfig
from synth.pipeline import CatalogueStage
from synth.run import StageReport


@flow(name="build-tools", flow_run_name="build-tools-{config.name}")
async def build_tools(
    config: RunConfig = RunConfig(), dataset: DatasetParameter = DEFAULT_DATASET
) -> list[StageReport]:
    """Write `domains` and `tools`. Each MCP server is started in a sandbox and asked."""
    async with joined_run(config, dataset) as run:
        return [await run_stage(run, CatalogueStage(run))]
