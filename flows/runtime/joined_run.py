"""What every flow does first: join the run of its command, or open one if Prefect started it."""

import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from prefect.context import FlowRunContext
from prefect.logging.handlers import APILogHandler
from prefect.runtime import flow_run

from flows.runtime.data_root import check_parameters
from flows.runtime.open_run import current_run, open_run
from flows.runtime.ownership import claim_this_flow_run
from flows.runtime.stage_runner import run_stage
from records.errors import ConfigError
from synth.engine.context import ConfigT
from synth.engine.job_config import JobConfig
from synth.engine.plans import StageReport
from synth.engine.run import Run
from synth.engine.stages import Stage

log = logging.getLogger("synth.flows")


@asynccontextmanager
async def joined_run(config: ConfigT, dataset: str) -> AsyncIterator[Run[ConfigT]]:
    """The run that the calling command or flow holds, or a new one until the block ends.

    A command has checked its settings and may write anywhere. A flow that was started from the UI
    or by a worker has only its parameters, whose paths must lie in the data root (ConfigError).
    """
    send_logs_to_ui()
    await claim_this_flow_run()
    if run := current_run():
        assert run.config == config, "a child flow was given another configuration than its run"
        yield run
        context = FlowRunContext.get()
        if context and context.flow_run and context.flow_run.parent_task_run_id is None:
            run.require_all()  # so that the UI, too, shows a run that is short as failed
        return
    check_parameters(config, dataset)
    try:
        async with open_run(config, dataset, command=f"flow {flow_run.flow_name}") as run:
            yield run
    except ConfigError:
        raise
    except Exception as error:
        words = "%s\nto go on, start the deployment %s again with the same parameters"
        log.error(words, error, flow_run.flow_name)
        raise


async def run_stages(
    config: JobConfig, dataset: str, stages: Sequence[Callable[[Run[Any]], Stage]]
) -> list[StageReport]:
    """The body of a flow that runs some stages in order; a report each."""
    async with joined_run(config, dataset) as run:
        return [await run_stage(run, stage(run)) for stage in stages]


def send_logs_to_ui() -> None:
    """What our packages log from INFO up becomes log lines of the flow run it belongs to."""
    for name in ("synth", "offline_llm", "trainer"):
        ours = logging.getLogger(name)
        if not any(isinstance(handler, APILogHandler) for handler in ours.handlers):
            ours.addHandler(APILogHandler())
            ours.setLevel(logging.INFO)
