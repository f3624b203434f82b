"""What a failed request means, by status and body."""

import pytest

from synth.llm.endpoint.failures import EXCERPT, MEANINGS, SendError, excerpt, status_of


@pytest.mark.parametrize("code", [*range(300, 400), *range(400, 600)])
def test_every_status_has_a_meaning(code: int) -> None:
    assert status_of(code, b"") in MEANINGS


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (400, "refused"),
        (401, "refused"),
        (403, "refused"),
        (404, "refused"),
        (408, "server_error"),
        (413, "refused"),
        (422, "refused"),
        (429, "rate_limited"),
        (500, "server_error"),
        (502, "server_error"),
        (503, "overloaded"),
        (504, "timeout"),
        (529, "overloaded"),
    ],
)
def test_statuses(code: int, status: str) -> None:
    assert status_of(code, b'{"error": {"message": "no"}}') == status


@pytest.mark.parametrize(
    "body",
    [
        b'{"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}',
        b'{"error": {"message": "Insufficient Balance"}}',
    ],
)
def test_an_account_without_money_is_not_waited_for(body: bytes) -> None:
    assert status_of(429, body) == "refused"
    assert status_of(402, b"") == "refused"


def test_refusals_for_load_use_up_no_try_and_cost_nothing() -> None:
    for status in ("rate_limited", "overloaded", "unreachable"):
        meaning = MEANINGS[status]
        assert not meaning.counts
        assert not meaning.billed
    assert MEANINGS["rate_limited"].signal == MEANINGS["overloaded"].signal == "congested"


def test_what_the_server_may_have_charged_for_is_billed() -> None:
    billed = {status for status, meaning in MEANINGS.items() if meaning.billed}
    assert billed == {"timeout", "connection_lost", "bad_body"}
    assert not SendError("connection_lost", "cut", billed=False).meaning.billed


def test_an_excerpt_is_one_line_and_bounded() -> None:
    page = b"<html>\n<body>" + b"bad\n gateway " * 10_000
    assert len(excerpt(page)) <= EXCERPT
    assert "\n" not in excerpt(page)
    assert excerpt(b'{"error": {"message": "too\\nmuch"}}') == "too much"
