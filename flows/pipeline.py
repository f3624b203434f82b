"""The whole of it: tools, tasks, rollouts, curation, then the report and its artifact."""

from prefect import flow
from prefect.artifacts import acreate_markdown_artifact

from flows.build_tasks import build_tasks
from flows.build_tools import build_tools
from flows.curate import curate
from flows.rollouts import rollouts
from flows.running import open_run
from flows.settings import DEFAULT_DATASET
from records.store import Dataset
from synth.config import RunConfig
from synth.report import summary_markdown, write_report
from synth.run import StageReport


@flow(name="pipeline", flow_run_name="pipeline-{config.name}")
async def pipeline(
    config: RunConfig = RunConfig(), dataset: str = DEFAULT_DATASET
) -> list[StageReport]:
    """From tool specs to curated trajectories. Run again, it goes on where it stopped."""
    async with open_run(config, dataset, command="pipeline") as run:
        reports: list[StageReport] = []
        for part in (build_tools, build_tasks, rollouts, curate):
            reports += await part(config, dataset)
        await publish_report(run.dataset)
        return reports


async def publish_report(dataset: Dataset) -> None:
    """Write `report.html` into the dataset, and its summary as an artifact of this flow run."""
    write_report(dataset)
    await acreate_markdown_artifact(
        key="summary", markdown=summary_markdown(dataset), description="What this dataset holds"
    )
