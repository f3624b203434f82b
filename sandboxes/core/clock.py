"""A stopped clock and seeded randomness inside a sandbox, so that a server says the same in every
run.

Python and Node get hooks of ours, always and never libfaketime, so that what they say does not
depend on whether that is installed; besides, its frozen clock makes time.sleep of Python fail.
Git takes its dates from the environment. Other programs see the real time unless libfaketime is
there: a server that is neither Python nor Node is started with it. Its randomness stays real. What
of Python and Node is seeded and what is not say `seeded_random.{py,cjs}` in `inside/hooks`.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

HOOKS = "/opt/clock"
INSIDE = Path(__file__).parents[1] / "inside" / "hooks"

IDENTITY = {
    "GIT_AUTHOR_NAME": "Agent",
    "GIT_AUTHOR_EMAIL": "agent@sandbox.invalid",
    "GIT_COMMITTER_NAME": "Agent",
    "GIT_COMMITTER_EMAIL": "agent@sandbox.invalid",
}


def clock_files() -> dict[str, str]:
    return {
        f"{HOOKS}/{name}": (INSIDE / name).read_text(encoding="utf-8")
        for name in ("sitecustomize.py", "clock.cjs", "seeded_random.py", "seeded_random.cjs")
    }


def clock_env(instant: str, *, seed: int | None = None, preload: bool = False) -> Mapping[str, str]:
    """What stops the clock at `instant`, an ISO date and time in UTC without offset, and with a
    `seed` makes what is drawn at random a stream of it."""
    seconds = int(datetime.fromisoformat(instant).replace(tzinfo=UTC).timestamp())
    env = IDENTITY | {
        "SANDBOX_CLOCK": instant,
        "PYTHONPATH": HOOKS,
        "NODE_OPTIONS": f"--require={HOOKS}/clock.cjs",
        "GIT_AUTHOR_DATE": f"{seconds} +0000",
        "GIT_COMMITTER_DATE": f"{seconds} +0000",
        "GIT_TEST_DATE_NOW": str(seconds),  # what "two weeks ago" counts from
    }
    if seed is not None:
        env["SANDBOX_SEED"] = str(seed)
    if preload and (library := libfaketime()) is not None:
        env |= {
            "LD_PRELOAD": library,
            "FAKETIME": instant.replace("T", " "),
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "NO_FAKE_STAT": "1",
        }
    return env


@cache
def libfaketime() -> str | None:
    """The library's path, the same inside since it lies under /usr; None if it is not installed."""
    for folder in ("lib/*/faketime", "lib/faketime", "lib64/faketime"):
        for path in Path("/usr").glob(f"{folder}/libfaketime.so.1"):
            return str(path)
    return None
