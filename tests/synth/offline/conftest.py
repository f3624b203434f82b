"""The provider over real HTTP: uvicorn on loopback, asked by the plain `openai` package."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import openai
import pytest
import uvicorn

from synth.offline import OfflineSettings, create_app


@contextmanager
def served(settings: OfflineSettings) -> Iterator[str]:
    """Base URL of a server with these settings on a free port."""
    config = uvicorn.Config(create_app(settings), host="127.0.0.1", port=0, log_level="error")
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
