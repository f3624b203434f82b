"""From the command line into a flow, in the order that tells a user's mistakes soonest.

The run is opened first: settings, dataset and endpoints are checked before the Prefect server is
started, and outside any flow, so that a mistake is an error message and no failed flow run.
"""

import asyncio
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from flows.cli.shared.output import say
from flows.runtime.open_run import open_run
from flows.runtime.server import check_given_server, prefect_server
from flows.runtime.settings import prefect_home
from synth.engine.job_config import JobConfig


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
    try:
        asyncio.run(_run(flows, str(dataset), command, retry_failed))
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as told_to_end:  # Prefect makes an exception of its own of SIGTERM
        raise KeyboardInterrupt from told_to_end
    return time.monotonic() - begun


async def _run(
    flows: Sequence[tuple[str, JobConfig]], dataset: str, command: str, retry_failed: bool
) -> None:
    check_given_server()
    with ExitStack() as server:
        for number, (name, config) in enumerate(flows):
            async with open_run(config, dataset, command=command, retry_failed=retry_failed):
                if number == 0:
                    server.enter_context(prefect_server(prefect_home(), say=say))
                from flows.cli.shared.start import (
                    start,  # imports Prefect, which reads the environment
                )

                await start(name, config, dataset)
