"""Flow runs of killed processes are marked as crashed, child flows included, and no others."""

import asyncio
import subprocess
import sys

import pytest

from records.processes import ProcessId, this_process
from tests.flows.conftest import ROOT
from tests.flows.prefect_api import flow_runs

DEAD = ProcessId(1, "1")
"""Process 1 lives, but began at another time: its number was used again."""


@pytest.mark.slow
def test_runs_of_killed_processes_are_swept_and_no_others(prefect_url: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.flows.owned_work", "killed"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "claimed\n"
    left = asyncio.run(make_runs_to_leave_alone())

    assert states(prefect_url, "killed", "killed-child") == {"RUNNING"}
    process.kill()
    process.wait()
    asyncio.run(sweep())
    assert states(prefect_url, "killed", "killed-child", "dead") == {"CRASHED"}
    message = flow_runs(prefect_url, "killed")["killed"]["state"]["message"]
    assert "the same command resumes it" in message
    assert states(prefect_url, *left) == {"RUNNING"}


async def sweep() -> None:
    from flows.runtime.ownership import sweep_dead_runs

    await sweep_dead_runs()


async def make_runs_to_leave_alone() -> list[str]:
    """Running flow runs by name, and one more, `dead`, whose process is gone."""
    from prefect import flow
    from prefect.client.orchestration import get_client
    from prefect.states import Running

    from flows.runtime.ownership import OURS, claim_of

    mine, gone = claim_of(this_process()), claim_of(DEAD)
    claims = {
        "mine": ([OURS], mine),
        "on-another-host": ([OURS], f"{gone} or so"),
        "of-a-worker": ([OURS], "host:1"),
        "not-claimed-yet": ([OURS], None),
        "of-others": ([], gone),
        "dead": ([OURS], gone),
    }

    @flow
    def none() -> None: ...

    async with get_client() as client:
        for name, (run_tags, claim) in claims.items():
            run = await client.create_flow_run(none, name=name, tags=run_tags, state=Running())
            if claim:
                await client.update_flow_run(run.id, infrastructure_pid=claim)
    return [name for name in claims if name != "dead"]


def states(url: str, *names: str) -> set[str]:
    found = flow_runs(url, *names)
    assert found.keys() == set(names)
    return {run["state_type"] for run in found.values()}
