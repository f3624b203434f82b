"""A flow started by a command: sweep what a killed run left, then run in this process."""

import asyncio
import os
from inspect import isawaitable
from typing import Any

from httpx import HTTPStatusError, TransportError
from prefect import Flow, tags
from prefect.events.worker import EventsWorker
from prefect.logging.handlers import APILogWorker

from flows.cli.shared.output import say
from flows.dry_run import dry_run
from flows.evolve_tools import evolve_tools
from flows.grade import grade
from flows.pipeline import pipeline
from flows.rephrase import grade_rewrites, rephrase
from flows.runtime.ownership import OURS, sweep_dead_runs
from records.errors import SynthError
from synth.engine.job_config import JobConfig

FLOWS: dict[str, Flow[..., Any]] = {
    "pipeline": pipeline,
    "dry_run": dry_run,
    "evolve_tools": evolve_tools,
    "grade": grade,
    "grade_rewrites": grade_rewrites,
    "rephrase": rephrase,
}

ATTEMPTS = 3
"""How often a flow is started when the Prefect server fails it. Prefect's client has by then
tried each request for a minute; SQLite under load is what makes a server answer 503."""
RETRY_S = 1.0
DRAIN_TIMEOUT_S = 20.0


async def start(name: str, config: JobConfig, dataset: str) -> None:
    """Run one of `FLOWS` here. Its own errors come out as they are.

    Whatever a failing server interrupted is resumed: committed shards stay, answers are journalled.
    """
    try:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                await _start_once(name, config, dataset)
                return
            except Exception as error:
                if not _is_server_trouble(error):
                    raise
                what = f"the Prefect server at {os.environ['PREFECT_API_URL']} failed: {error}"
                if attempt == ATTEMPTS:
                    raise SynthError(f"{what}\nThe same command goes on from here.") from error
                say(f"{what}; going on in {RETRY_S:g} s")
                await asyncio.sleep(RETRY_S)
    finally:
        await _send_what_waits()


async def _start_once(name: str, config: JobConfig, dataset: str) -> None:
    if swept := await sweep_dead_runs():
        say(f"{swept} flow runs of killed processes are now marked as crashed in the UI")
    with tags(OURS):
        await FLOWS[name](config, dataset)


async def _send_what_waits() -> None:
    """Logs and events leave in batches: unless they are sent while the server is there, the
    process retries for a minute at its end."""
    for worker in (APILogWorker, EventsWorker):
        drained = worker.drain_all(timeout=DRAIN_TIMEOUT_S)
        if isawaitable(drained):
            await drained


def _is_server_trouble(error: BaseException) -> bool:
    """True if nothing but failing requests to the Prefect API ended the flow."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(_is_server_trouble, error.exceptions))
    if isinstance(error, HTTPStatusError):
        return error.response.status_code >= 500
    if isinstance(error, TransportError):
        return True
    return error.__cause__ is not None and _is_server_trouble(error.__cause__)
