"""A flow started by a command: sweep what a killed run left, then run in this process."""

import logging

from prefect import tags
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterState,
    FlowRunFilterStateType,
    FlowRunFilterTags,
)
from prefect.client.schemas.objects import StateType
from prefect.events.worker import EventsWorker
from prefect.logging.handlers import APILogWorker
from prefect.states import Crashed

from flows.dry_run import dry_run
from flows.pipeline import pipeline
from records.processes import ProcessId, is_alive, this_process
from synth.config import RunConfig

log = logging.getLogger("synth.flows")

FLOWS = {"pipeline": pipeline, "dry_run": dry_run}
OURS = "agentic-synth"
OWNER = "owner:"
DRAIN_TIMEOUT_S = 20.0


async def start(name: str, config: RunConfig, dataset: str) -> None:
    """Run the flow `pipeline` or `dry_run` here. Its own errors come out as they are."""
    await sweep_dead_runs()
    me = this_process()
    try:
        with tags(OURS, f"{OWNER}{me.pid}:{me.started}"):
            await FLOWS[name](config, dataset)
    finally:
        await _send_what_waits()


async def _send_what_waits() -> None:
    """Logs and events leave in batches: unless they are sent while the server is there, the
    process retries for a minute at its end."""
    for worker in (APILogWorker, EventsWorker):
        drained = worker.drain_all(timeout=DRAIN_TIMEOUT_S)
        if drained is not None:
            await drained


async def sweep_dead_runs() -> int:
    """Mark runs of ours as crashed whose process is gone: a kill -9 leaves them "Running"."""
    ours = FlowRunFilter(
        tags=FlowRunFilterTags(all_=[OURS]),
        state=FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.RUNNING])),
    )
    swept = 0
    async with get_client() as client:
        for run in await client.read_flow_runs(flow_run_filter=ours):
            owner = next((tag for tag in run.tags if tag.startswith(OWNER)), None)
            if owner is None:
                continue
            pid, _, started = owner.removeprefix(OWNER).partition(":")
            if not is_alive(ProcessId(int(pid), started)):
                state = Crashed(message="its process was killed; the same command resumes it")
                await client.set_flow_run_state(run.id, state, force=True)
                swept += 1
    if swept:
        log.warning("%d flow runs of killed processes marked as crashed", swept)
    return swept
