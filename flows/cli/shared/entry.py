"""From the command line into a flow, in the order that tells a user's mistakes soonest.

The run is opened first: settings, dataset and endpoints are checked before the Prefect server is
started, and outside any flow, so that a mistake is an error message and no failed flow run.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from flows.cli.shared.going_on import retry_failed as words_of_retry
from flows.cli.shared.going_on import same_command_goes_on
from flows.cli.shared.output import say
from flows.runtime.open_run import open_run
from flows.runtime.server import check_given_server, prefect_server
from flows.runtime.settings import prefect_home
from records.errors import ConfigError
from synth.engine.job_config import JobConfig
from synth.engine.run import Run
from synth.pipeline.config import RunConfig
from synth.rephrasing.writing.config import RephraseConfig


def run_flow(
    name: str, config: JobConfig, dataset: Path, *, command: str, retry_failed: bool = False
) -> float:
    """Run a flow by its name in `flows.cli.shared.start` in this process, on the project's
    Prefect server.

    `command` is what whoever finds the dataset held is told, such as `synth demo`. Returns the
    seconds it took.
    """
    return run_flows([(name, config)], dataset, command=command, retry_failed=retry_failed)


def run_flows(
    flows: Sequence[tuple[str, JobConfig]],
    dataset: Path,
    *,
    command: str,
    retry_failed: bool = False,
) -> float:
    """As `run_flow`, one flow after another on one Prefect server, each a run of its own."""
    begun = time.monotonic()
    with same_command_goes_on():
        try:
            asyncio.run(_run(flows, dataset, command, retry_failed))
        except (Exception, KeyboardInterrupt):
            raise
        except BaseException as told_to_end:  # Prefect makes an exception of its own of SIGTERM
            raise KeyboardInterrupt from told_to_end
    return time.monotonic() - begun


async def _run(
    flows: Sequence[tuple[str, JobConfig]], dataset: Path, command: str, retry_failed: bool
) -> None:
    check_given_server()
    with ExitStack() as server:
        for number, (name, config) in enumerate(flows):
            async with (
                open_run(config, str(dataset), command=command, retry_failed=retry_failed) as run,
                _told_of_failures(run),
            ):
                if number == 0:
                    server.enter_context(prefect_server(prefect_home(), say=say))
                from flows.cli.shared.start import (
                    start,  # imports Prefect, which reads the environment
                )

                with same_command_goes_on(begun=True):
                    await start(name, config, str(dataset))


@asynccontextmanager
async def _told_of_failures(run: Run[Any]) -> AsyncIterator[None]:
    """How items that failed are tried again: on whatever error ends the block, else at once."""

    def line() -> str | None:
        number = sum(report.failed for report in run.reports.values())
        resumed = isinstance(run.config, RunConfig | RephraseConfig)
        told = words_of_retry(number, run.run_id, run.dataset.root)
        return told if number and resumed else None

    try:
        yield
    except BaseException as error:
        if not isinstance(error, ConfigError) and (told := line()):
            error.add_note(told)
        raise
    if told := line():
        say(told)
