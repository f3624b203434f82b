"""Stops the wall clock of every Python in a sandbox at the instant in SANDBOX_CLOCK (UTC).

Python runs this at its start. Monotonic clocks go on, so timeouts and event loops work.
"""

import datetime
import os
import time

real_date, real_datetime = datetime.date, datetime.datetime
real = {name: getattr(time, name) for name in ("gmtime", "localtime", "ctime", "strftime")}
real_clock, real_clock_ns = time.clock_gettime, time.clock_gettime_ns

UTC = datetime.timezone.utc  # noqa: UP017  # any Python 3 may start in a sandbox
INSTANT = real_datetime.fromisoformat(os.environ["SANDBOX_CLOCK"]).replace(tzinfo=UTC)
SECONDS = int(INSTANT.timestamp())


class LooksReal(type):
    """Objects that C code makes are of the real types; they must pass as ours too."""

    def __instancecheck__(cls, instance):
        return isinstance(instance, cls.__mro__[1])

    def __subclasscheck__(cls, subclass):
        return issubclass(subclass, cls.__mro__[1])


class date(real_date, metaclass=LooksReal):  # noqa: N801
    @classmethod
    def today(cls):
        return real_datetime.fromtimestamp(SECONDS).date()

    def __repr__(self):
        return f"datetime.{super().__repr__()}"


class datetime_(real_datetime, metaclass=LooksReal):  # noqa: N801
    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(SECONDS, tz)

    @classmethod
    def today(cls):
        return cls.now()

    @classmethod
    def utcnow(cls):
        return cls.fromtimestamp(SECONDS, UTC).replace(tzinfo=None)

    def __repr__(self):
        return f"datetime.{super().__repr__()}"


datetime_.__name__ = datetime_.__qualname__ = "datetime"
date.__module__ = datetime_.__module__ = "datetime"
datetime.date, datetime.datetime = date, datetime_

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
