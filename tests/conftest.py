"""Sandboxes are real here, and so is Prefect's server. Where no sandbox can run, these tests say
why and are skipped."""

import gc
import os
from collections.abc import Iterator

import pytest

import tests.examples  # noqa: F401  (registers the profile that --hypothesis-profile=fast names)
from flows.runtime.server import prefect_server
from sandboxes.lending.leases import available


@pytest.fixture(scope="session")
def sandboxed() -> None:
    if (reason := available()) is not None:
        pytest.skip(f"no sandbox can run here: {reason}")


@pytest.fixture(scope="session")
def prefect_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The API of one real server for all that run flows. Workers find each other's in the folder
    they share."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base
    with prefect_server(shared / "prefect") as url:
        yield url


def pytest_configure() -> None:
    """What is imported and collected stays to the end: looking through it for garbage, again and
    again, takes a third of the time of collecting and much of that of small tests."""
    gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """What failed, a line each, after everything else: a log that is cut keeps its end, and the
    summary of pytest may hold thousands of characters for one failure."""
    yield
    reports = [r for name in ("failed", "error") for r in terminalreporter.stats.get(name, [])]
    for report in reports:
        terminalreporter.write_line(f"failed: {report.nodeid} ({report.when})")
