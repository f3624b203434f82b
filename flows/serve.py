"""The served deployments: every flow startable from the UI, with its typed form."""

from prefect import serve

from flows.build_tasks import build_tasks
from flows.build_tools import build_tools
from flows.curate import curate
from flows.dry_run import dry_run
from flows.pipeline import pipeline
from flows.rollouts import rollouts

FLOWS = (pipeline, dry_run, build_tools, build_tasks, rollouts, curate)


def serve_deployments() -> None:
    """Serve all flows from this process until it is stopped; each run is a subprocess."""
    serve(*(f.to_deployment(name="local", tags=["agentic-synth"]) for f in FLOWS))
