"""Each test of this folder is asked of each backend; those that are coroutines are awaited."""

import asyncio
import inspect

import pytest

from tests.sandboxes.conformance.subjects import SUBJECTS, Subject

MARKS = {"podman": [pytest.mark.cluster]}


@pytest.fixture(params=[pytest.param(name, marks=MARKS.get(name, ())) for name in SUBJECTS])
def subject(request: pytest.FixtureRequest) -> Subject:
    found = SUBJECTS[request.param]()
    if (reason := found.backend.unavailable()) is not None:
        pytest.skip(f"no sandbox of {found.name} can run here: {reason}")
    return found


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True
