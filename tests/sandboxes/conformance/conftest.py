"""Each test of this folder is asked of each backend; those that are coroutines are awaited."""

import asyncio
import inspect
from functools import cache

import pytest

from tests.sandboxes.conformance.subjects import SUBJECTS, Subject

MARKS = {name: [pytest.mark.cluster] for name in ("podman", "pods", "claims")}
"""`make test-kubernetes` asks the last two, for some minutes."""


@cache
def asked(name: str) -> tuple[Subject, str | None]:
    """Who is asked, and why that cannot be."""
    found = SUBJECTS[name]()
    return found, found.backend.unavailable()


@pytest.fixture(params=[pytest.param(name, marks=MARKS.get(name, ())) for name in SUBJECTS])
def subject(request: pytest.FixtureRequest) -> Subject:
    found, reason = asked(request.param)
    if reason is not None:
        pytest.skip(f"no sandbox of {found.name} can run here: {reason}")
    return found


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True
