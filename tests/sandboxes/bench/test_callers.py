"""All callers are measured, and the normal user is one: it sees what it runs and no more."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from sandboxes.bench import callers, memory
from sandboxes.core.template import BASE_ENV

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be all callers")


def said_by_user(*command: str, needed: Iterable[Path] = callers.this_python()) -> str:
    env = BASE_ENV | {"PYTHONPATH": str(callers.ROOT)}
    argv = callers.user_command(command, needed)
    done = subprocess.run(argv, env=env, cwd="/", capture_output=True, text=True, check=True)
    return done.stdout.strip()


@needs_root
def test_the_normal_user_is_one_and_runs_this_python() -> None:
    ask = "import os, sys, pydantic; print(os.getuid(), os.getgroups(), sys.version)"
    said = said_by_user(sys.executable, "-c", ask)
    assert said == f"{callers.USER} [] {sys.version}"


@needs_root
def test_of_closed_folders_it_sees_what_it_needs_and_others_are_as_they_were(
    tmp_path: Path,
) -> None:
    shut, needed = tmp_path / "shut", tmp_path / "shut/a b/code"
    for name in ("a b/code/file", "a b/secret", "secret"):
        (shut / name).parent.mkdir(parents=True, exist_ok=True)
        (shut / name).write_text("text")
    shut.chmod(0o700)
    seen = said_by_user("find", str(tmp_path), "-type", "f", needed=[needed])
    assert seen == str(needed / "file")
    assert shut.stat().st_mode & 0o777 == 0o700
    assert (shut / "secret").read_text() == "text"
    with pytest.raises(subprocess.CalledProcessError):
        said_by_user("cat", str(needed / "file"), needed=[])


def test_memory_is_that_of_the_processes_and_of_the_kernel() -> None:
    own = memory.processes_mb([os.getpid()])
    assert 5 < own < 10_000
    assert memory.processes_mb([os.getpid()] * 2) > 1.5 * own
    assert memory.kernel_mb() > 1


@needs_root
def test_a_range_is_of_the_one_process_that_is_given_it() -> None:
    if (reason := callers.no_ranges()) is not None:
        pytest.skip(f"no user has a range here: {reason}")
    before = {path: Path(path).read_bytes() for path in callers.ENTRIES}
    ask = "from sandboxes.local import subordinates; print(*subordinates.namespace().users)"
    given = callers.by_user([sys.executable, "-c", ask], ranges=True)
    assert tuple(map(int, given.stdout.split())) == callers.range_of(callers.USER)
    ask = "from sandboxes.local import users; print(users.apart())"
    without = callers.by_user([sys.executable, "-c", ask], ranges=False).stdout.decode()
    assert without == f"user {callers.USER} has no entry in /etc/passwd, which newuidmap asks for\n"
    assert {path: Path(path).read_bytes() for path in callers.ENTRIES} == before


@pytest.mark.slow
@needs_root
@pytest.mark.usefixtures("sandboxed")
def test_every_figure_is_there_for_all_callers() -> None:
    rows = {row.name: row for row in asyncio.run(callers.all_three(repeats=2, live=3))}
    answered, left = rows["- that answered"], rows["- processes and groups left behind"]
    weight = rows["  - of its two processes (PSS)"]
    assert (answered.root, answered.user) == (3, 3)
    assert max(left.root, left.user) <= 0  # what was measured before may end only now
    assert 1 < weight.root < 20
    assert 1 < weight.user < 20
    if callers.no_ranges() is None:
        assert answered.ranges == 3
        assert left.ranges is not None
        assert left.ranges <= 0
        assert weight.ranges is not None
        assert 1 < weight.ranges < 20
