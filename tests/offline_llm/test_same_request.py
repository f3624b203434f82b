"""The offline model is given what a hosted model would get, byte for byte, and nothing else.

A whole small pipeline runs twice: once on the offline model in process, once against a "hosted"
URL, a recording proxy on loopback that hands each request on to the offline model.
"""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn

import flows.runtime.open_run
from offline_llm.app import create_app
from offline_llm.settings.settings import OfflineSettings
from synth.llm.probing.questions import REPORT
from synth.llm.settings.config import RoleConfig
from synth.pipeline.config import RunConfig
from tests.flows.pipeline_work import content_of, run_pipeline

pytestmark = pytest.mark.slow

RUN = RunConfig(domains=("clinic_desk",), servers=(), code=(), num_tasks=3)
HEADERS_OF_HTTP = {b"host", b"connection", b"content-length", b"accept-encoding", b"user-agent"}
"""What the transport sets; it says nothing of the run."""


class Recorder:
    """An ASGI application in front of the offline model that keeps what every chat request
    carried."""

    def __init__(self) -> None:
        self.provider = create_app(OfflineSettings())
        self.bodies: set[bytes] = set()
        self.headers: set[bytes] = set()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or not scope["path"].endswith("/chat/completions"):
            await self.provider(scope, receive, send)
            return
        chunks: list[bytes] = []

        async def recorded() -> Any:
            message = await receive()
            chunks.append(message.get("body", b""))
            if message["type"] == "http.request" and not message.get("more_body"):
                self.bodies.add(b"".join(chunks))
            return message

        self.headers |= {name.lower() for name, _ in scope["headers"]}
        await self.provider(scope, recorded, send)


@contextmanager
def served(app: Any) -> Iterator[str]:
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/v1"
    server.should_exit = True
    thread.join()


def test_the_provider_sees_what_a_hosted_model_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded, hosted = Recorder(), Recorder()
    monkeypatch.setattr(flows.runtime.open_run, "create_app", lambda settings: embedded)
    run_pipeline(tmp_path / "embedded", RUN)
    with served(hosted) as url:
        roles = {role: RoleConfig(base_url=url) for role in RUN.roles}
        run_pipeline(tmp_path / "hosted", RUN.model_copy(update={"roles": roles}))
    assert len(embedded.bodies) > 20
    probe = {body for body in hosted.bodies if json.loads(body)["messages"] == REPORT}
    assert len(probe) == 1  # whether a model fills in forms is asked of hosted ones alone
    assert embedded.bodies == hosted.bodies - probe
    assert embedded.headers - HEADERS_OF_HTTP == hosted.headers - HEADERS_OF_HTTP
    assert content_of(tmp_path / "embedded") == content_of(tmp_path / "hosted")
