"""The catalogue: built-in and own domains, and the tools of real MCP servers, as table rows."""

from prefect import flow

from flows.runtime.data_root import ConfigParameter
from flows.runtime.joined_run import run_stages
from flows.runtime.settings import DEFAULT_DATASET, DatasetParameter
from synth.engine.plans import StageReport
from synth.pipeline.config import RunConfig
from synth.pipeline.server_goals import ServerGoalsStage
from synth.pipeline.server_starts import ServerStartsStage
from synth.pipeline.stages import CatalogueStage


@flow(name="build-tools", flow_run_name="build-tools-{config.name}")
async def build_tools(
    config: ConfigParameter[RunConfig] = RunConfig(), dataset: DatasetParameter = DEFAULT_DATASET
) -> list[StageReport]:
    """Write `domains` and `tools`. Each MCP server is started in a sandbox and asked."""
    return await run_stages(config, dataset, [CatalogueStage, ServerStartsStage, ServerGoalsStage])
