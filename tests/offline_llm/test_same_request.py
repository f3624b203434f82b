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
from synth.judging.calibration import JudgingConfig
from synth.llm.probing.questions import REPORT
from synth.llm.settings.config import RoleConfig
from synth.pipeline.config import RunConfig
from tests.flows.pipeline_work import content_of, run_pipeline

pytestmark = pytest.mark.slow

RUN = RunConfig(
    domains=("clinic_desk",),
    servers=(),
    code=(),
    num_tasks=3,
    judging=JudgingConfig(perturbed_share=0.0),
)
"""Without a trial of the judge: a judge is known by its address too, so what a trial asks is drawn
by it."""
JUDGED = {"verdicts", "curation", "calibration"}
"""Tables whose rows name a grading, and so the judge's address."""
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


def is_judges(body: dict[str, Any]) -> bool:
    return body["messages"][0]["content"].startswith("You judge")


def words_of(bodies: set[bytes]) -> set[str]:
    """The requests without the judge's seeds, which hang on its address."""
    read = [json.loads(body) for body in bodies]
    return {json.dumps({**body, "seed": None} if is_judges(body) else body) for body in read}


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
    assert words_of(embedded.bodies) == words_of(hosted.bodies - probe)
    others = {body for body in embedded.bodies if not is_judges(json.loads(body))}
    assert others < hosted.bodies
    assert embedded.headers - HEADERS_OF_HTTP == hosted.headers - HEADERS_OF_HTTP
    made, same = (content_of(tmp_path / name) for name in ("embedded", "hosted"))
    assert made.keys() >= JUDGED
    assert {n: made[n] for n in made.keys() - JUDGED} == {n: same[n] for n in same.keys() - JUDGED}
