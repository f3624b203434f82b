"""The stopped clock: the same instant everywhere, in ways that programs do not trip over."""

import asyncio
import shutil
from datetime import UTC, datetime

import pytest

from sandboxes.core.clock import libfaketime
from sandboxes.core.python_env import base_python
from sandboxes.core.template import SandboxTemplate
from sandboxes.lending.leases import lease

pytestmark = pytest.mark.usefixtures("sandboxed")

INSTANT = "2026-03-02T09:00:00"
SECONDS = int(datetime.fromisoformat(INSTANT).replace(tzinfo=UTC).timestamp())


def inside(*argv: str, preload: bool = False) -> str:
    async def go() -> str:
        async with lease(SandboxTemplate(clock=INSTANT, preload_clock=preload)) as sandbox:
            done = await sandbox.exec(argv)
            assert (done.exit_code, done.stderr) == (0, b"")
            return done.stdout.decode()

    return asyncio.run(go())


PYTHON = """
import time, datetime, pickle
from datetime import datetime as dt, date, timedelta, timezone
print(time.time(), time.time_ns(), time.clock_gettime(time.CLOCK_REALTIME))
print(time.strftime("%F %T"), time.ctime(), time.gmtime()[:6], time.localtime()[:6], sep=" | ")
print(dt.now(), dt.utcnow(), dt.today(), dt.now(timezone.utc), date.today(), sep=" | ")
plain = dt.strptime("2026-01-01", "%Y-%m-%d")
print(isinstance(plain, dt), isinstance(plain, date), isinstance(date(2026, 1, 1), dt))
print(dt.now() - plain, dt.now() + timedelta(days=1), pickle.loads(pickle.dumps(dt.now())))
print(dt.fromtimestamp(0, timezone.utc), date.fromisoformat("2026-01-01"), repr(date(2026, 1, 1)))
started = time.monotonic()
time.sleep(0.01)
print(time.monotonic() > started)
"""

EXPECTED = f"""\
{SECONDS}.0 {SECONDS}000000000 {SECONDS}.0
2026-03-02 09:00:00 | Mon Mar  2 09:00:00 2026 | (2026, 3, 2, 9, 0, 0) | (2026, 3, 2, 9, 0, 0)
2026-03-02 09:00:00 | 2026-03-02 09:00:00 | 2026-03-02 09:00:00 | 2026-03-02 09:00:00+00:00 \
| 2026-03-02
True True False
60 days, 9:00:00 2026-03-03 09:00:00 2026-03-02 09:00:00
1970-01-01 00:00:00+00:00 2026-01-01 datetime.date(2026, 1, 1)
True
"""


def test_python_stands_still_and_still_waits() -> None:
    assert inside(base_python(), "-c", PYTHON) == EXPECTED


SUBTYPES = """
import datetime
class Moment(datetime.datetime): pass
print(Moment.now(), type(Moment.now()) is Moment, isinstance(datetime.datetime.now(), Moment))
print(datetime.datetime.__basicsize__, type(datetime.datetime) is type)
"""


def test_types_that_derive_from_those_of_time_are_as_they_would_be() -> None:
    """Extension types derive from them as well, and lay out memory by the size of the real ones."""
    size = datetime.__basicsize__
    said = f"{INSTANT.replace('T', ' ')} True False\n{size} True\n"
    assert inside(base_python(), "-c", SUBTYPES) == said


@pytest.mark.skipif(shutil.which("node", path="/usr/bin") is None, reason="no node in /usr/bin")
def test_node_stands_still() -> None:
    script = "console.log(Date.now(), new Date().toISOString(), new Date(0).getTime())"
    assert inside("node", "-e", script) == f"{SECONDS}000 {INSTANT}.000Z 0\n"


@pytest.mark.skipif(libfaketime() is None, reason="libfaketime is not installed here")
def test_other_programs_stand_still_where_libfaketime_is_installed() -> None:
    assert inside("date", "+%FT%T", preload=True) == f"{INSTANT}\n"


def test_git_counts_and_dates_from_the_instant() -> None:
    script = """
        git init -q . && git commit -q --allow-empty -m one
        git log --format='%an %aI %cI' --since='1 minute ago'
        git log --format=%s --until='1 minute ago'
    """
    assert inside("sh", "-ec", script) == f"Agent {INSTANT}+00:00 {INSTANT}+00:00\n"
