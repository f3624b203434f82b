"""Sandboxes are real here. Where none can run, these tests say why and are skipped."""

import pytest

import tests.examples  # noqa: F401  (registers the profile that --hypothesis-profile=fast names)
from sandboxes.local.backend import available


@pytest.fixture(scope="session")
def sandboxed() -> None:
    if (reason := available()) is not None:
        pytest.skip(f"no sandbox can run here: {reason}")
