"""Limits by the minute: forms of headers, and servers of each kind on a simulated clock."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth.llm.endpoint.gate import MinuteLimits
from synth.llm.endpoint.rates import Left, Meter, RateHint, rate_hint, retry_after, seconds_in
from tests.doubles.quotas import Quota, duration
from tests.synth.llm.endpoint.simulated import Bucket, Crowd, Limit, now, simulate

CLOSE_S = 2.0
"""Of moments, which are compared with the machine's clock."""


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("6m0s", 360.0),
        ("120ms", 0.12),
        ("1s", 1.0),
        ("1.5s", 1.5),
        ("1h2m3s", 3723.0),
        ("1d", 86_400.0),
        ("59.70s", 59.7),
        ("500us", 0.0005),
        ("17", 17.0),
        ("0", 0.0),
        (" 2.5 ", 2.5),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert seconds_in(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["soon", "-1", "nan", "1x", "s", "1 2", "", "6m0"])
def test_what_is_no_time_says_nothing(text: str) -> None:
    assert seconds_in(text) is None


@given(st.integers(1, 7_200_000))
def test_durations_are_read_as_they_are_written(milliseconds: int) -> None:
    found = seconds_in(duration(milliseconds / 1000))
    assert found == pytest.approx(milliseconds / 1000, abs=0.002)


@pytest.mark.parametrize(
    "form",
    [
        lambda at: str(int(at)),
        lambda at: str(int(at * 1000)),
        lambda at: datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        lambda at: format_datetime(datetime.fromtimestamp(at, UTC), usegmt=True),
    ],
    ids=["epoch_s", "epoch_ms", "iso", "http"],
)
@pytest.mark.parametrize("away_s", [-100.0, 30.0, 3600.0])
def test_moments(form: Callable[[float], str], away_s: float) -> None:
    found = seconds_in(form(time.time() + away_s))
    assert found == pytest.approx(max(0.0, away_s), abs=CLOSE_S)


def test_retry_after_in_each_form() -> None:
    in_a_minute = format_datetime(datetime.fromtimestamp(time.time() + 60, UTC), usegmt=True)
    assert retry_after({"retry-after": "7"}) == 7.0
    assert retry_after({"retry-after-ms": "250"}) == 0.25
    assert retry_after({"retry-after-ms": "250", "retry-after": "1"}) == 0.25
    assert retry_after({"retry-after": in_a_minute}) == pytest.approx(60, abs=CLOSE_S)
    assert retry_after({"retry-after": "later"}) is None
    assert retry_after({}) is None


@pytest.mark.parametrize(
    "headers",
    [
        {"x-ratelimit-{}-requests": ("100", "7", "30s")},
        {"anthropic-ratelimit-requests-{}": ("100", "7", "30")},
        {"x-ratelimit-{}": ("100", "7", "30")},
        {"ratelimit-{}": ("100, 100;w=60", "7", "30")},
    ],
)
def test_what_is_left_in_each_form(headers: dict[str, tuple[str, str, str]]) -> None:
    told = {
        form.format(what): value
        for form, values in headers.items()
        for what, value in zip(("limit", "remaining", "reset"), values, strict=True)
    }
    assert rate_hint(told) == RateHint(requests=Left(100, 7, 30.0))


def test_headers_that_say_nothing_give_no_hint() -> None:
    assert rate_hint({}) is None
    assert rate_hint({"x-ratelimit-limit": "many", "x-ratelimit-remaining": "some"}) is None
    assert rate_hint({"x-ratelimit-limit-requests": "100"}) is None


KINDS = ("fixed", "sliding", "bucket")


def limit_of(kind: str, per_minute: int, headers: bool) -> Limit:
    form = "openai" if headers else "none"
    if kind == "bucket":
        return Bucket(requests=per_minute, headers=headers)
    if kind == "sliding":
        return Quota(
            requests=per_minute, kind="sliding", headers=form, retry_after="none", clock=now
        )
    return Quota(requests=per_minute, headers=form, retry_after="none", clock=now)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("per_minute", [60, 600])
def test_a_server_that_tells_its_limit_is_used_in_full_and_hardly_refuses(
    kind: str, per_minute: int
) -> None:
    asked = simulate(lambda: Crowd(limit_of(kind, per_minute, headers=True)).ask_for(5))
    assert asked.admitted_per_minute == pytest.approx(per_minute, rel=0.1)
    assert asked.refused_per_answer < 0.1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("per_minute", [300, 900])
def test_a_server_that_tells_nothing_is_used_in_full_and_refuses_little(
    kind: str, per_minute: int
) -> None:
    asked = simulate(lambda: Crowd(limit_of(kind, per_minute, headers=False)).ask_for(5))
    assert asked.admitted_per_minute == pytest.approx(per_minute, rel=0.1)
    assert asked.refused_per_answer < 0.15


@pytest.mark.parametrize("per_minute", [30, 240])
def test_a_limit_that_a_user_has_set_is_kept(per_minute: int) -> None:
    server = Quota(requests=per_minute + per_minute // 20, headers="none", clock=now)
    limits = MinuteLimits(requests_per_minute=per_minute)
    asked = simulate(lambda: Crowd(server, limits=limits).ask_for(5))
    assert asked.admitted_per_minute == pytest.approx(per_minute, rel=0.05)
    assert asked.refused_per_answer == 0.0


@given(
    st.lists(st.tuples(st.floats(0.0, 20.0), st.integers(1, 500)), min_size=1, max_size=60),
    st.integers(60, 6000),
)
def test_a_set_limit_holds_over_any_time(asks: list[tuple[float, int]], per_minute: int) -> None:
    """Whatever is asked, once the wait is over it may go, and all that went fits the limit, but for
    the burst and the last amount."""
    meter, at, went = Meter(per_minute), 0.0, 0
    for later_s, amount in asks:
        at += later_s
        at += meter.delay(at, amount) + 1e-6
        assert meter.delay(at, amount) <= 1e-6
        assert went <= per_minute / 60.0 * at + max(1.0, per_minute / 60.0) + 1.0
        meter.take(at, amount)
        went += amount


def test_a_hint_of_a_window_that_is_over_says_nothing() -> None:
    meter = Meter()
    meter.hear(0.0, Left(100, 0, 10.0))
    assert meter.delay(4.0, 1) == pytest.approx(6.0)
    late = RateHint(requests=Left(100, 0, 10.0)).aged(25.0).requests
    assert late is not None
    meter.hear(12.0, late)
    assert meter.delay(12.0, 1) == 0.0


def test_an_answer_that_was_long_on_its_way_does_not_move_the_end_of_a_window() -> None:
    meter = Meter()
    meter.hear(0.0, Left(100, 50, 60.0))
    hint = RateHint(requests=Left(100, 0, 50.0)).aged(20.0).requests  # said at 10, heard at 30
    assert hint is not None
    meter.hear(30.0, hint)
    assert meter.delay(30.0, 1) == pytest.approx(30.0)
