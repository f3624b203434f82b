"""The pipeline in small, on the offline model: checks a configuration and spends nothing."""

from prefect import flow

from flows.pipeline import run_parts
from flows.runtime.data_root import ConfigParameter
from flows.runtime.settings import DatasetParameter
from records.errors import SynthError
from synth.engine.plans import StageReport
from synth.pipeline.config import RunConfig


@flow(name="dry-run", flow_run_name="dry-run-{config.name}")
async def dry_run(
    config: ConfigParameter[RunConfig] = RunConfig(), dataset: DatasetParameter = "data/dry-run"
) -> list[StageReport]:
    """Run every stage of `config` on a handful of items, and check that all are accounted for."""
    reports = await run_parts(config.in_small(), dataset)
    for report in reports:
        counted = report.kept + report.dropped + report.failed + report.pending
        if counted != report.requested or report.pending:
            raise SynthError(
                f"{report.stage}: {report.requested} items were requested and {counted} counted, "
                f"{report.pending} of them pending; please report this with the dataset {dataset}"
            )
    return reports
