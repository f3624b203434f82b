"""Stored trajectories judged again: by another judge, another rubric, newer checks."""

import logging

from prefect import flow

from flows.curate import judge_all
from flows.runtime.data_root import ConfigParameter
from flows.runtime.joined_run import joined_run
from flows.runtime.settings import DEFAULT_DATASET, DatasetParameter
from synth.engine.plans import StageReport
from synth.judging.config import GradeConfig
from synth.publish.report import write_report

log = logging.getLogger("synth.flows")


@flow(name="grade", flow_run_name="grade-{config.name}")
async def grade(
    config: ConfigParameter[GradeConfig] = GradeConfig(),
    dataset: DatasetParameter = DEFAULT_DATASET,
) -> list[StageReport]:
    """Write `verdicts`, `calibration` and `curation` of a grading beside those that are there."""
    async with joined_run(config, dataset) as run:
        reports = await judge_all(run)
        for report in reports:
            log.info("%s: %s", report.stage, report.summary())
        write_report(run.dataset)
        return reports
