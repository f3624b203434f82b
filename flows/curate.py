"""Grading, the trial of the judge, and curation, which decides over the whole set what is kept."""

import logging
from typing import Any

from prefect import flow

from flows.runtime.data_root import ConfigParameter
from flows.runtime.joined_run import joined_run
from flows.runtime.settings import DEFAULT_DATASET, DatasetParameter
from flows.runtime.stage_runner import run_stage
from synth.curation.report import write_decontamination_report
from synth.curation.stages import CurationStage
from synth.engine.plans import StageReport
from synth.engine.run import Run
from synth.judging.judge_rates import as_table
from synth.judging.judge_report import trial_text
from synth.judging.stages import (
    CalibrationStage,
    GradingStage,
    grading_of,
    may_want_more,
    trials,
    warning_about,
)
from synth.pipeline.config import RunConfig

log = logging.getLogger("synth.flows")


@flow(name="curate", flow_run_name="curate-{config.name}")
async def curate(
    config: ConfigParameter[RunConfig] = RunConfig(), dataset: DatasetParameter = DEFAULT_DATASET
) -> list[StageReport]:
    """Write `verdicts`, `calibration` and `curation` for the dataset's trajectories."""
    async with joined_run(config, dataset) as run:
        return await judge_all(run)


async def judge_all(run: Run[Any]) -> list[StageReport]:
    """The three stages, and what must be said of the judge."""
    reports = [await run_stage(run, GradingStage(run))]
    trial = await run_stage(run, CalibrationStage(run))
    while may_want_more(trial):
        trial = await run_stage(run, CalibrationStage(run))
    reports += [trial, await run_stage(run, CurationStage(run))]
    if run.config.curation.decontamination.files:
        log.info("decontamination report: %s", write_decontamination_report(run.dataset))
    minimum = run.config.judging.minimum_quality
    if table := as_table(trials(run.dataset, grading_of(run.config)), minimum):
        log.info("%s", trial_text(table))
    if warning := warning_about(run.dataset, run.config):
        log.warning("%s", warning)
    return reports
