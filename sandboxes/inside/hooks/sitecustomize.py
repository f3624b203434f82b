"""Stops the wall clock of every Python in a sandbox at the instant in SANDBOX_CLOCK (UTC).

Python runs this at its start. Monotonic clocks go on, so timeouts and event loops work. Where the
sandbox has a seed, too, what is drawn at random becomes its stream.
"""

import datetime
import gc
import os
import time

real = {name: getattr(time, name) for name in ("gmtime", "localtime", "ctime", "strftime")}
real_clock, real_clock_ns = time.clock_gettime, time.clock_gettime_ns

UTC = datetime.timezone.utc  # noqa: UP017  # any Python 3 may start in a sandbox
INSTANT = datetime.datetime.fromisoformat(os.environ["SANDBOX_CLOCK"]).replace(tzinfo=UTC)
SECONDS = int(INSTANT.timestamp())


def now(cls, tz=None):
    return cls.fromtimestamp(SECONDS, tz)


def utcnow(cls):
    return cls.fromtimestamp(SECONDS, UTC).replace(tzinfo=None)


# The methods of the real type are replaced, which it does not allow by assignment; nothing has
# looked them up yet, so that none is cached. A type of our own in its place is no base for
# extension types: those of pandas crash on it. `today` of both types asks time.time.
methods = gc.get_referents(datetime.datetime.__dict__)[0]
methods["now"], methods["utcnow"] = classmethod(now), classmethod(utcnow)

time.time = lambda: float(SECONDS)
time.time_ns = lambda: SECONDS * 10**9
time.gmtime = lambda seconds=None: real["gmtime"](SECONDS if seconds is None else seconds)
time.localtime = lambda seconds=None: real["localtime"](SECONDS if seconds is None else seconds)
time.ctime = lambda seconds=None: real["ctime"](SECONDS if seconds is None else seconds)
time.asctime = lambda t=None, asctime=time.asctime: asctime(time.localtime() if t is None else t)
time.strftime = lambda form, t=None: real["strftime"](form, time.localtime() if t is None else t)
time.clock_gettime = lambda clock: (
    float(SECONDS) if clock == time.CLOCK_REALTIME else real_clock(clock)
)
time.clock_gettime_ns = lambda clock: (
    SECONDS * 10**9 if clock == time.CLOCK_REALTIME else real_clock_ns(clock)
)

if "SANDBOX_SEED" in os.environ:
    import seeded_random  # noqa: F401
