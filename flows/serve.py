"""The served deployments: every flow startable from the UI, with its typed form."""

import warnings

from prefect import serve
from prefect.deployments.runner import RunnerDeployment

from flows.build_tasks import build_tasks
from flows.build_tools import build_tools
from flows.curate import curate
from flows.dry_run import dry_run
from flows.evolve_tools import evolve_tools
from flows.grade import grade
from flows.pipeline import pipeline
from flows.pretrain import pretrain
from flows.rephrase import rephrase
from flows.rollouts import rollouts
from flows.runtime.ownership import OURS
from flows.sft import sft

FLOWS = (
    pipeline,
    dry_run,
    build_tools,
    evolve_tools,
    build_tasks,
    rollouts,
    curate,
    grade,
    rephrase,
    pretrain,
    sft,
)

LOOK_EVERY_S = 2.0
"""How soon a run that somebody started in the UI begins; Prefect's default is 10 s."""


def serve_deployments() -> None:
    """Serve all flows from this process until it is stopped; each run is a subprocess."""
    warnings.filterwarnings("ignore", "coroutine 'Runner.astop' was never awaited")  # at SIGTERM
    serve(
        *(RunnerDeployment.from_flow(flow, name="local", tags=[OURS]) for flow in FLOWS),
        query_seconds=LOOK_EVERY_S,
        pause_on_shutdown=False,  # nothing is scheduled, so there is nothing to pause
        print_starting_message=False,
    )
