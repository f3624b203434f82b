"""The breaker: when an endpoint is given rest, and how it is let in again."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth.llm.endpoint.breaker import (
    FIRST_OUTAGE_S,
    FIRST_REST_S,
    LET_IN_S,
    LONGEST_OUTAGE_S,
    LONGEST_REST_S,
    REFUSALS_IN_A_ROW,
    REQUESTS_THAT_FAIL,
    Breaker,
    Failure,
)

FAILURES = st.sampled_from(["refused", "unreachable", "failed"])


def broken(failure: Failure = "unreachable", *, sent: int = 8) -> tuple[Breaker, list[int]]:
    """A breaker that has just stopped letting requests through, and the numbers of those that
    were sent before and are still out."""
    breaker = Breaker()
    numbers = [breaker.start(0.0) for _ in range(sent)]
    out = numbers[REQUESTS_THAT_FAIL:]
    for place, number in enumerate(numbers[:REQUESTS_THAT_FAIL]):
        breaker.failed(number, 0.0, failure, request=str(place))
    assert breaker.state == "resting"
    return breaker, out


@given(st.lists(st.tuples(FAILURES, st.booleans()), max_size=40))
def test_after_an_outage_one_request_tries_at_a_time(ends: list[tuple[Failure, bool]]) -> None:
    breaker, _ = broken()
    for failure, is_cancelled in ends:
        now = breaker.until
        assert breaker.delay(now) == 0.0
        number = breaker.start(now)
        assert breaker.delay(now) != 0.0
        assert not breaker.is_gone or breaker.delay(now + 1e6) is None
        if is_cancelled:
            breaker.given_up(number)
        else:
            breaker.failed(number, now, failure, request="same")
            assert breaker.delay(now) == pytest.approx(breaker.until - now)
            assert breaker.until > now
    breaker.answered(breaker.start(breaker.until))
    assert breaker.state == "open"
    assert breaker.since is None


@given(st.lists(FAILURES, max_size=30))
def test_failures_of_requests_sent_before_the_wait_lengthen_nothing(
    failures: list[Failure],
) -> None:
    breaker, out = broken("refused")
    until, number = breaker.until, out[0]
    for place, failure in enumerate(failures):
        breaker.failed(number, 0.1, failure, request=f"late-{place}", wait_s=1e4)
        assert (breaker.state, breaker.until) == ("resting", until)
    tries = breaker.start(breaker.until)
    for place, failure in enumerate(failures):
        breaker.failed(number, until, failure, request=f"late-{place}", wait_s=1e4)
    breaker.given_up(number)
    breaker.answered(number)
    assert breaker.state == "trying"
    breaker.answered(tries)
    assert breaker.state == "open"


def waits_of(failure: Failure, count: int) -> list[float]:
    """The rests of an endpoint whose every try fails in this way."""
    breaker, _ = broken(failure)
    waits, now = [breaker.until], breaker.until
    while len(waits) < count:
        breaker.failed(breaker.start(breaker.until), now, failure, request="same")
        waits.append(breaker.until - now)
        now = breaker.until
    return waits


@pytest.mark.parametrize(
    ("failure", "first_s", "longest_s"),
    [
        ("refused", FIRST_REST_S, LONGEST_REST_S),
        ("unreachable", FIRST_OUTAGE_S, LONGEST_OUTAGE_S),
        ("failed", FIRST_OUTAGE_S, LONGEST_OUTAGE_S),
    ],
)
def test_rests_double_up_to_the_longest(failure: Failure, first_s: float, longest_s: float) -> None:
    expected = [min(first_s * 2**n, longest_s) for n in range(12)]
    assert waits_of(failure, 12) == pytest.approx(expected)


def test_one_request_that_fails_again_and_again_is_no_outage() -> None:
    breaker = Breaker()
    for _ in range(20):
        breaker.failed(breaker.start(breaker.until), 0.0, "failed", request="same")
    assert breaker.state == "open"


def test_an_answer_between_them_keeps_failures_from_adding_up() -> None:
    breaker = Breaker()
    for number in range(40):
        breaker.failed(breaker.start(breaker.until), 0.0, "failed", request=str(number))
        if number % (REQUESTS_THAT_FAIL - 1) == 1:
            breaker.answered(breaker.start(breaker.until))
    assert breaker.state == "open"


def test_refusals_rest_when_there_are_several_or_the_server_says_how_long() -> None:
    few = Breaker()
    for _ in range(REFUSALS_IN_A_ROW - 1):
        few.failed(few.start(few.until), 0.0, "refused")
    assert few.delay(0.0) == 0.0
    told = Breaker()
    told.failed(told.start(told.until), 0.0, "refused", wait_s=17.0)
    assert told.delay(0.0) == 17.0
    assert not told.is_gone


@given(st.floats(0.0, 1e4), st.floats(0.0, 1e4))
def test_a_rest_is_as_long_as_the_server_asks_at_least(now: float, wait_s: float) -> None:
    breaker = Breaker()
    breaker.failed(breaker.start(breaker.until), now, "refused", wait_s=wait_s)
    delay = breaker.delay(now)
    assert delay is not None
    assert math.isclose(delay, max(wait_s, FIRST_REST_S), abs_tol=1e-6)


def test_answers_to_requests_of_before_say_nothing_of_a_quota() -> None:
    breaker = Breaker()
    sent = [breaker.start(0.0) for _ in range(20)]
    for number in range(REFUSALS_IN_A_ROW):
        breaker.failed(breaker.start(0.0), 0.0, "refused")
        breaker.answered(sent[number])
    assert breaker.state == "resting"


def test_a_try_that_is_not_refused_soon_opens_the_way() -> None:
    breaker, _ = broken("refused")
    at = breaker.until
    long_answer = breaker.start(at)
    assert breaker.delay(at) == LET_IN_S
    assert breaker.delay(at + LET_IN_S) == 0.0
    breaker.start(at + LET_IN_S)
    assert breaker.delay(at + LET_IN_S) == 0.0
    breaker.failed(long_answer, at + LET_IN_S, "refused")
    assert breaker.delay(at + LET_IN_S) == 2 * FIRST_REST_S


def test_a_try_at_an_endpoint_that_is_gone_is_waited_for() -> None:
    breaker, _ = broken("unreachable")
    breaker.start(breaker.until)
    assert breaker.delay(breaker.until + 1e6) is None


def test_the_time_of_the_outage_counts_from_its_first_rest() -> None:
    breaker = Breaker()
    for number in range(REQUESTS_THAT_FAIL):
        breaker.failed(
            breaker.start(breaker.until), 100.0, "unreachable", request=str(number), words="gone"
        )
    for now in (101.0, 110.0, 150.0):
        breaker.failed(breaker.start(breaker.until), now, "unreachable", words=f"gone at {now:g}")
    assert breaker.since == 100.0
    assert breaker.words == "gone at 150"
    assert breaker.is_gone


def test_rests_of_a_quota_do_not_lengthen_those_of_a_failure() -> None:
    breaker, _ = broken("refused")
    for _ in range(8):
        breaker.failed(breaker.start(breaker.until), breaker.until, "refused")
    now = breaker.until
    breaker.failed(breaker.start(breaker.until), now, "failed", request="unlucky")
    assert breaker.until - now == FIRST_OUTAGE_S
