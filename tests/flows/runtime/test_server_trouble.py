"""A Prefect server that fails requests delays a run, or ends it with a message; rows are safe."""

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.flows.conftest import ROOT
from tests.flows.pipeline_work import SMALL, content_of

FLOW_RUN = b"POST /api/flow_runs/ "
"""The first request of a flow run."""
ARTIFACT = b"POST /api/artifacts/ "
"""A request in the middle of its work."""
UNAVAILABLE = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"

CONFIG = f"""
domains = ["clinic_desk", "web_shop"]
servers = []
code = []
num_tasks = {SMALL.num_tasks}
seed = {SMALL.seed}
tasks.forms = {{ {", ".join(f"{form} = {share}" for form, share in SMALL.tasks.forms)} }}
"""


class Done(NamedTuple):
    code: int
    stderr: str


@pytest.mark.slow
def test_a_run_outlasts_failing_requests(prefect_url: str, tmp_path: Path, small_run: Path) -> None:
    done = asyncio.run(run_through(prefect_url, tmp_path, [ARTIFACT, ARTIFACT], retries=1))
    assert done.code == 0, done.stderr
    assert "failed: Server error '503" in done.stderr
    assert content_of(tmp_path / "d") == content_of(small_run)


@pytest.mark.slow
def test_a_server_that_keeps_failing_ends_the_run_with_a_message(
    prefect_url: str, tmp_path: Path
) -> None:
    done = asyncio.run(run_through(prefect_url, tmp_path, [FLOW_RUN] * 99, retries=0))
    assert done.code == 1, done.stderr
    assert "The same command goes on from here." in done.stderr
    assert "Traceback" not in done.stderr


async def run_through(url: str, folder: Path, failing: Sequence[bytes], *, retries: int) -> Done:
    """`synth run` against the server behind a proxy that answers some requests by 503.

    Prefect's client itself tries a request again `retries` times, two seconds later.
    """
    port = int(url.removesuffix("/api").rpartition(":")[2])
    proxy = await asyncio.start_server(FailingServer(port, failing), "127.0.0.1", 0)
    api = f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}/api"
    environment = {"PYTHONPATH": str(ROOT), "PREFECT_API_URL": api}
    environment["PREFECT_CLIENT_MAX_RETRIES"] = str(retries)
    (folder / "run.toml").write_text(CONFIG)
    async with proxy:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "flows.cli.main", "run", "run.toml", "--dataset", "d"),
            cwd=folder,
            env=os.environ | environment,
            stderr=asyncio.subprocess.PIPE,
        )
        _, said = await process.communicate()
        assert process.returncode is not None
    return Done(process.returncode, said.decode())


class FailingServer:
    """Passes bytes on to the real server, but answers 503 to the next of `failing` when it comes.

    A request is told by how a chunk of bytes begins.
    """

    def __init__(self, port: int, failing: Sequence[bytes]) -> None:
        self.port, self.failing = port, list(failing)

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers, requests = await asyncio.open_connection("127.0.0.1", self.port)
        back = asyncio.create_task(copy(answers, writer))
        while chunk := await reader.read(65536):
            if self.failing and chunk.startswith(self.failing[0]):
                self.failing.pop(0)
                writer.write(UNAVAILABLE)
                await reader.read()  # until the client has read that and closes
                break
            requests.write(chunk)
        requests.close()
        await back


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while chunk := await reader.read(65536):
        writer.write(chunk)
    writer.close()
