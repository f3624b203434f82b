"""The whole of it: tools, tasks, rollouts, rounds, curation, then the report and its artifacts."""

import logging

from prefect import flow, tags
from prefect.artifacts import (
    acreate_markdown_artifact,
    acreate_progress_artifact,
    acreate_table_artifact,
    aupdate_progress_artifact,
)

from flows.build_tasks import build_tasks
from flows.build_tools import build_tools
from flows.curate import curate
from flows.rollouts import rollouts, rounds
from flows.runtime.data_root import ConfigParameter
from flows.runtime.joined_run import joined_run
from flows.runtime.ownership import OURS
from flows.runtime.settings import DEFAULT_DATASET, DatasetParameter
from flows.runtime.stage_runner import yield_row
from records.errors import PendingError
from records.store.dataset import Dataset
from synth.engine.plans import StageReport
from synth.pipeline.config import RunConfig
from synth.publish.report import summary_markdown, write_report

PARTS = (build_tools, build_tasks, rollouts, rounds, curate)

log = logging.getLogger("synth.flows")


@flow(name="pipeline", flow_run_name="pipeline-{config.name}")
async def pipeline(
    config: ConfigParameter[RunConfig] = RunConfig(), dataset: DatasetParameter = DEFAULT_DATASET
) -> list[StageReport]:
    """From tool specs to curated trajectories. Run again, it goes on where it stopped."""
    return await run_parts(config, dataset)


async def run_parts(config: RunConfig, dataset: str) -> list[StageReport]:
    """Every part as a child flow of the calling flow, which shows how far they are."""
    parts = [part for part in PARTS if part is not rounds or config.has_rounds]
    async with joined_run(config, dataset) as run:
        progress = await acreate_progress_artifact(
            progress=0.0, key="progress", description=", then ".join(part.name for part in parts)
        )
        reports: list[StageReport] = []
        for number, part in enumerate(parts, start=1):
            try:
                with tags(OURS):
                    made = await part(config, dataset)
            except PendingError:  # what there is can be looked at meanwhile
                await publish(reports, run.dataset)
                raise
            for report in made:
                log.info("%s: %s", report.stage, report.summary())
            reports += made
            await aupdate_progress_artifact(progress, progress=100.0 * number / len(parts))
        await publish(reports, run.dataset)
        return reports


async def publish(reports: list[StageReport], dataset: Dataset) -> None:
    """Write `report.html` into the dataset; yields and summary are artifacts of this flow run."""
    path = write_report(dataset)
    await acreate_table_artifact(
        key="yields",
        table=[yield_row(report) for report in reports],
        description="requested = kept + dropped + failed + pending",
    )
    await acreate_markdown_artifact(
        key="summary",
        markdown=summary_markdown(dataset),
        description=f"Whole report, conversations included: {path.resolve()}",
    )
