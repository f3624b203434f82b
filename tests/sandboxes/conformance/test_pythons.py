"""The agent's source runs with every Python from 3.9, as images of other people have them."""

import asyncio
import json
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests.sandboxes.conformance import test_capabilities, test_commands, test_files, test_streams
from tests.sandboxes.conformance.plain import PlainBackend
from tests.sandboxes.conformance.subjects import Subject, plain_remains

OLDEST, NEWEST = 9, 15

ASK = "import sys, json; print(json.dumps(sys.version_info[:2]))"


def python_of(minor: int) -> str | None:
    """An interpreter of this version, on the search path or among pyenv's."""
    name = f"python3.{minor}"
    places = [Path("/usr/bin", name), *Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/{name}")]
    for path in [*map(str, places), shutil.which(name)]:
        if path is not None and Path(path).exists():
            done = subprocess.run([path, "-c", ASK], capture_output=True, check=False)
            if done.returncode == 0 and json.loads(done.stdout) == [3, minor]:
                return path
    return None


@cache
def pythons() -> dict[str, str]:
    """Version -> interpreter, of those at hand, and of the oldest and the newest of them."""
    found = {f"3.{minor}": python_of(minor) for minor in range(OLDEST, NEWEST + 1)}
    here = {version: path for version, path in found.items() if path is not None}
    ends = list(here.values())
    return here | ({"oldest": ends[0], "newest": ends[-1]} if ends else {})


EACH = [pytest.param(f"3.{minor}", marks=pytest.mark.scale) for minor in range(OLDEST, NEWEST + 1)]


@pytest.fixture(params=["oldest", "newest", *EACH])
def of_python(request: pytest.FixtureRequest) -> Subject:
    """What the oldest and the newest at hand can, those between can, too."""
    if (path := pythons().get(request.param)) is None:
        pytest.skip(f"no Python here: {request.param}")
    backend = PlainBackend(path)
    if (reason := backend.unavailable()) is not None:
        pytest.skip(f"no sandbox can run here: {reason}")
    return Subject("plain", backend, path, plain_remains)


async def test_commands_and_files_are_as_with_ours(of_python: Subject) -> None:
    await test_commands.test_what_cannot_be_started_is_a_result_and_no_error(of_python)
    await test_commands.test_what_a_command_left_running_ends_with_it(of_python)
    await test_files.test_what_is_no_file_is_refused_by_name(of_python)
    await test_files.test_odd_names_are_names(of_python)
    await test_capabilities.test_recycling(of_python)


async def test_streams_and_strangers_are_as_with_ours(of_python: Subject) -> None:
    await test_streams.test_strangers_are_refused_and_do_no_harm(of_python)
    async with of_python.sandbox(linger_s=60) as sandbox:
        work = asyncio.create_task(test_streams.worked(of_python, sandbox))
        while not work.done():
            await asyncio.sleep(0.02)
            sandbox.drop_stream()
        await work
