"""Texts rewritten for pretraining, with their fidelity measured."""

import logging

from prefect import flow
from prefect.artifacts import acreate_markdown_artifact, acreate_table_artifact

from flows.runtime.data_root import ConfigParameter
from flows.runtime.joined_run import joined_run
from flows.runtime.settings import DEFAULT_DATASET, DatasetParameter
from flows.runtime.stage_runner import run_stage, yield_row
from synth.engine.plans import StageReport
from synth.engine.run import Run
from synth.rephrasing import rephrase as job
from synth.rephrasing.calibration.report import warning_about
from synth.rephrasing.report import summary_markdown, write_report
from synth.rephrasing.writing.config import RephraseConfig

log = logging.getLogger("synth.flows")


@flow(name="rephrase", flow_run_name="rephrase-{config.name}")
async def rephrase(
    config: ConfigParameter[RephraseConfig] = RephraseConfig(),
    dataset: DatasetParameter = DEFAULT_DATASET,
) -> list[StageReport]:
    """Write `rephrasings`, their measurements, verdicts and decisions; `rephrasing.html` is the
    report."""
    async with joined_run(config, dataset) as run:
        return await _reported(run, await job.rephrase(run, run_stage))


@flow(name="grade-rewrites", flow_run_name="grade-rewrites-{config.name}")
async def grade_rewrites(
    config: ConfigParameter[RephraseConfig] = RephraseConfig(),
    dataset: DatasetParameter = DEFAULT_DATASET,
) -> list[StageReport]:
    """Decide anew about the rewrites that the dataset holds, by other thresholds, gates or another
    judge. Nothing is written anew, and the sources are not read."""
    async with joined_run(config, dataset) as run:
        return await _reported(run, await job.decide(run, run_stage))


async def _reported(run: Run[RephraseConfig], reports: list[StageReport]) -> list[StageReport]:
    for report in reports:
        log.info("%s: %s", report.stage, report.summary())
    if warning := warning_about(run.dataset, run.config):
        log.warning("%s", warning)
    path = write_report(run.dataset)
    await acreate_table_artifact(
        key="rephrase-yields",
        table=[yield_row(report) for report in reports],
        description="requested = kept + dropped + failed + pending",
    )
    await acreate_markdown_artifact(
        key="rephrase-summary",
        markdown=summary_markdown(run.dataset),
        description=f"Whole report, rewrites beside their sources: {path.resolve()}",
    )
    return reports
