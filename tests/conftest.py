"""Sandboxes are real here. Where none can run, these tests say why and are skipped."""

import gc

import pytest

import tests.examples  # noqa: F401  (registers the profile that --hypothesis-profile=fast names)
from sandboxes.lending.leases import available


@pytest.fixture(scope="session")
def sandboxed() -> None:
    if (reason := available()) is not None:
        pytest.skip(f"no sandbox can run here: {reason}")


def pytest_configure() -> None:
    """What is imported and collected stays to the end: looking through it for garbage, again and
    again, takes a third of the time of collecting and much of that of small tests."""
    gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()
