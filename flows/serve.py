"""The served deployments: every flow startable from the UI, with its typed form."""

import warnings
from collections.abc import Callable
from typing import Any

from prefect import Flow, serve
from prefect.deployments.runner import RunnerDeployment

from flows.build_tasks import build_tasks
from flows.build_tools import build_tools
from flows.curate import curate
from flows.dry_run import dry_run
from flows.evolve_tools import evolve_tools
from flows.grade import grade
from flows.pipeline import pipeline
from flows.rephrase import grade_rewrites, rephrase
from flows.rollouts import rollouts, rounds
from flows.runtime.ownership import OURS

FLOWS: tuple[Flow[..., Any], ...] = (
    pipeline,
    dry_run,
    build_tools,
    evolve_tools,
    build_tasks,
    rollouts,
    rounds,
    curate,
    grade,
    rephrase,
    grade_rewrites,
)

OF_TRAINING = ("torch", "safetensors", "tokenizers")
"""Modules of the extra `train`, which the flows that train need and the others do not."""

LOOK_EVERY_S = 2.0
"""How soon a run that somebody started in the UI begins; Prefect's default is 10 s."""


def serve_deployments(say: Callable[[str], None]) -> None:
    """Serve the flows from this process until it is stopped; each run is a subprocess. `say` is
    told what cannot be served."""
    warnings.filterwarnings("ignore", "coroutine 'Runner.astop' was never awaited")  # at SIGTERM
    flows = (*FLOWS, *training_flows(say))
    serve(
        *(RunnerDeployment.from_flow(flow, name="local", tags=[OURS]) for flow in flows),
        query_seconds=LOOK_EVERY_S,
        pause_on_shutdown=False,  # nothing is scheduled, so there is nothing to pause
        print_starting_message=False,
    )


def training_flows(say: Callable[[str], None]) -> tuple[Flow[..., Any], ...]:
    """The flows that train; none, and a line that says so, without the extra `train`."""
    try:
        from flows.pretrain import pretrain
        from flows.rl import rl
        from flows.sft import sft
    except ModuleNotFoundError as error:
        if error.name not in OF_TRAINING:
            raise
        say(
            f"the flows pretrain, sft and rl are not served, for {error.name} is not installed: "
            "`make setup-all` in a checkout, else pip install 'agentic-synth[train]'"
        )
        return ()
    return pretrain, sft, rl
