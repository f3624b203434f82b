"""Which process runs a flow run of ours: without it, one that was killed stays "Running" for ever.

The process stands in the flow run's `infrastructure_pid`, where Prefect's workers write theirs. A
run that was deployed and is not claimed here belongs to its worker, which sees to it.
"""

from datetime import UTC, datetime, timedelta

from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterState,
    FlowRunFilterStateType,
    FlowRunFilterTags,
)
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.context import FlowRunContext
from prefect.states import Crashed

from records.processes import ProcessId, is_alive, this_host, this_process

OURS = "agentic-synth"
"""Tag of every flow run and deployment of this project."""

UNCLAIMED = timedelta(minutes=10)
"""A run that no process has claimed for so long was killed between its first two requests."""


async def claim_this_flow_run() -> None:
    """Write down that this process runs the flow run it is in, unless a worker already did."""
    context = FlowRunContext.get()
    if context is None or context.flow_run is None:
        raise RuntimeError("claim_this_flow_run was called outside a flow run")
    if context.flow_run.infrastructure_pid is None:
        claim = claim_of(this_process())
        async with get_client() as client:
            await client.update_flow_run(context.flow_run.id, infrastructure_pid=claim)


def claim_of(process: ProcessId) -> str:
    return f"process {process.pid} started {process.started} on {this_host()}"


async def sweep_dead_runs() -> int:
    """Mark flow runs of ours as crashed whose process on this host is gone; their number."""
    unfinished = FlowRunFilter(
        tags=FlowRunFilterTags(all_=[OURS]),
        state=FlowRunFilterState(
            type=FlowRunFilterStateType(any_=[StateType.PENDING, StateType.RUNNING])
        ),
    )
    state = Crashed(message="its process was killed; the same command resumes it")
    async with get_client() as client:
        dead = [r for r in await client.read_flow_runs(flow_run_filter=unfinished) if _is_dead(r)]
        for run in dead:
            await client.set_flow_run_state(run.id, state, force=True)
    return len(dead)


def _is_dead(run: FlowRun) -> bool:
    if run.infrastructure_pid is None:
        created = run.created or datetime.now(UTC)
        return run.deployment_id is None and datetime.now(UTC) - created > UNCLAIMED
    match run.infrastructure_pid.split(" ", 5):
        case ["process", pid, "started", started, "on", host] if host == this_host():
            return not is_alive(ProcessId(int(pid), started))
    return False
