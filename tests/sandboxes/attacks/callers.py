"""The callers who make the sandboxes: the one of the tests, a user without rights, and one that has
a range of users in /etc/subuid.

The last two are played where the first is root: in a child process under a user id of its own,
which plays its attempts several at a time and writes their outcomes to stdout.
"""

import asyncio
import itertools
import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sandboxes.bench.callers import becoming, giving_ranges, no_ranges
from sandboxes.core.python_env import VERSION
from sandboxes.lending.leases import available
from sandboxes.local.users import apart
from tests.sandboxes.attacks.attempt import Attempt, Outcome, is_root, play_both
from tests.sandboxes.attacks.scenes import PLACE
from tests.sandboxes.attacks.suite import ATTEMPTS

ROOT = Path(__file__).parents[3]
MODULE = "tests.sandboxes.attacks.callers"

AT_ONCE = 6
"""Attempts played at a time: most of their time is waiting for a sandbox to start or to end."""

PATIENCE_S = 600


async def play_all(attempts: Iterable[Attempt]) -> dict[str, Outcome]:
    """Name -> outcome. Those that measure the machine come last, one after the other."""
    seats = asyncio.Semaphore(AT_ONCE)

    async def seated(attempt: Attempt) -> tuple[str, Outcome]:
        async with seats:
            try:
                return attempt.name, await play_both(attempt)
            except Exception as error:
                return attempt.name, Outcome("", f"unclear: {error!r}")

    together = [attempt for attempt in attempts if not attempt.alone]
    found = dict(await asyncio.gather(*map(seated, together)))
    for attempt in attempts:
        if attempt.alone:
            found |= [await seated(attempt)]
    return found


def by_a_user(names: Iterable[str], *, ranges: bool = False) -> dict[str, Outcome] | str:
    """Outcomes of these attempts where a user without rights makes the sandboxes, who may have a
    range of other users; or why no such user can here."""
    if not is_root():
        return "the caller of the tests is such a user already"
    if shutil.which("setpriv") is None:
        return "setpriv is not installed"
    if ranges and (reason := no_ranges()) is not None:
        return f"no user has a range here: {reason}"
    uid = unused_uid()
    drop = becoming(uid, giving_ranges(uid) if ranges else [])
    with packages_for_all() as folder:
        home = folder / "home"
        scratch = home / "scratch"
        scratch.mkdir(parents=True)
        (home / "diary").write_text("a file that no sandbox is shown")
        for path in (home, scratch):
            os.chown(path, uid, uid)
            path.chmod(0o700)
        env = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(home),
            "TMPDIR": str(scratch),
            "PYTHONPATH": str(folder / "packages"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        python = next((p for p in pythons() if runs([*drop, p, "-c", "import pytest"], env)), None)
        if python is None:
            return f"no Python {VERSION} here that another user can run"
        done = subprocess.run(
            [*drop, python, "-m", MODULE, *["ranges"] * ranges],
            input=json.dumps(list(names)), env=env, cwd=folder,
            capture_output=True, text=True, timeout=PATIENCE_S, check=False,
        )  # fmt: skip
    if done.returncode != 0:
        raise RuntimeError(f"the other caller ended with {done.returncode}: {done.stderr[-2000:]}")
    report = json.loads(done.stdout)
    return report if isinstance(report, str) else {n: Outcome(*o) for n, o in report.items()}


def unused_uid() -> int:
    """A user id that nobody has here and no process runs under."""
    running = {path.stat().st_uid for path in Path("/proc").glob("[0-9]*") if path.exists()}
    taken = running | {entry.pw_uid for entry in pwd.getpwall()}
    return next(uid for uid in itertools.count(61_000) if uid not in taken)


def pythons() -> list[str]:
    """Interpreters of this version: the running one, which may lie in a closed home, and /usr's."""
    return [str(Path(sys.executable).resolve()), f"/usr/bin/python{VERSION}"]


def runs(command: list[str], env: dict[str, str]) -> bool:
    return (
        subprocess.run(command, env=env, capture_output=True, cwd="/", check=False).returncode == 0
    )


@contextmanager
def packages_for_all() -> Iterator[Path]:
    """A folder whose `packages` hold all that this module imports, readable by everybody: the
    checkout and its environment may lie in a closed home."""
    listing = [sys.executable, "-c", LIST_IMPORTED.format(module=MODULE)]
    done = subprocess.run(listing, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    with tempfile.TemporaryDirectory(prefix="agentic-synth-", dir=PLACE) as name:
        Path(name).chmod(0o755)
        folder = Path(name, "packages")
        folder.mkdir()
        shutil.copy(ROOT / "pyproject.toml", folder)
        for source in done.stdout.splitlines():
            copied = folder / Path(source).name
            if Path(source).is_dir():
                shutil.copytree(source, copied, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, copied)
        yield Path(name)


LIST_IMPORTED = """
import sys
from pathlib import Path
import {module}
files = [Path(m.__file__) for m in list(sys.modules.values()) if getattr(m, "__file__", None)]
folders = [Path(path) for path in sys.path if "site-packages" in path] + [Path.cwd()]
for folder in folders:
    here = [file for file in files if file.is_relative_to(folder)]
    files = [file for file in files if file not in here]
    for top in sorted({{file.relative_to(folder).parts[0] for file in here}}):
        print(folder / top)
"""
"""Prints the packages that are not Python's own; the environment may lie in the checkout."""


def main() -> None:
    names = set(json.load(sys.stdin))
    lacking = apart() if sys.argv[1:] == ["ranges"] else None
    report = (
        available()
        or lacking
        or asyncio.run(play_all([attempt for attempt in ATTEMPTS if attempt.name in names]))
    )
    json.dump(report, sys.stdout)


if __name__ == "__main__":
    main()
