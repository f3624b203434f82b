"""The offline model over real HTTP: uvicorn on loopback, asked by the plain `openai` package."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import openai
import pytest
import uvicorn

from offline_llm.app import create_app
from offline_llm.server.request_log import RequestLog
from offline_llm.settings.settings import OfflineSettings


@contextmanager
def served(settings: OfflineSettings, log: Path | None = None) -> Iterator[str]:
    """Base URL of a server with these settings on a free port."""
    app = create_app(settings)
    logged = RequestLog(app, log) if log else app
    config = uvicorn.Config(logged, host="127.0.0.1", port=0, log_level="error")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}/v1"
    server.should_exit = True
    thread.join()


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    with served(OfflineSettings()) as base_url:
        yield base_url


@pytest.fixture(scope="session")
def client(url: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=url, api_key="none", max_retries=0)
