"""What a failed request means: whether another try can help, and what its ledger row says."""

from collections.abc import Callable
from typing import NamedTuple

from synth.llm.endpoint.breaker import Failure
from synth.llm.endpoint.gate import NO_OUTCOME, Outcome
from synth.llm.endpoint.limiter import Signal
from synth.llm.endpoint.rates import RateHint
from synth.llm.wire.error_body import words_of

EXCERPT = 300
"""Characters of a server's error that are repeated in ours."""


class Meaning(NamedTuple):
    """Of a status in the ledger."""

    signal: Signal
    failure: Failure | None
    billed: bool
    """Whether the server may have charged for it."""
    counts: bool
    """Whether it uses up one of the request's tries; the others wait for the endpoint instead."""


MEANINGS = {
    "rate_limited": Meaning("congested", "refused", billed=False, counts=False),
    "overloaded": Meaning("congested", "refused", billed=False, counts=False),
    "unreachable": Meaning("neutral", "unreachable", billed=False, counts=False),
    "server_error": Meaning("neutral", "failed", billed=False, counts=True),
    "timeout": Meaning("congested", "failed", billed=True, counts=True),
    "connection_lost": Meaning("neutral", "failed", billed=True, counts=True),
    "bad_body": Meaning("neutral", None, billed=True, counts=True),
    "refused": Meaning("neutral", None, billed=False, counts=True),
}
"""What a request may come to but an answer. Refused ones are never tried again as they were."""


class SendError(Exception):
    """One request came to nothing."""

    def __init__(
        self,
        status: str,
        detail: str,
        *,
        code: int | None = None,
        body: bytes = b"",
        retry_after_s: float | None = None,
        hint: RateHint | None = None,
        billed: bool | None = None,
    ) -> None:
        """`code` and `body`: of the server's answer, if it gave one."""
        super().__init__(f"{status}: {detail}")
        self.status = status
        self.detail = detail
        self.code = code
        self.body = body
        self.retry_after_s = retry_after_s
        self.hint = hint
        meaning = MEANINGS[status]
        self.meaning = meaning if billed is None else meaning._replace(billed=billed)


def outcome_of(failure: SendError, request: str) -> Outcome:
    """What the endpoint's gate is told; `request` tells requests apart, whichever try it is."""
    meaning = failure.meaning
    return NO_OUTCOME._replace(
        signal=meaning.signal,
        failure=meaning.failure,
        answered=meaning.failure is None,
        request=request,
        wait_s=failure.retry_after_s,
        hint=failure.hint,
        words=failure.detail,
    )


def status_of(code: int, body: bytes) -> str:
    """The ledger's word for an answer with an HTTP status that is no 2xx."""
    if is_out_of_money(code, body) or (code == 429 and b"request too large" in body[:4096].lower()):
        return "refused"  # no wait helps
    if code in _STATUS:
        return _STATUS[code]
    return "server_error" if code >= 500 else "refused"


_STATUS = {
    408: "server_error",
    409: "server_error",
    425: "server_error",
    429: "rate_limited",
    503: "overloaded",
    504: "timeout",
    529: "overloaded",
}
"""Of statuses whose class does not say it."""


def is_out_of_money(code: int, body: bytes) -> bool:
    """An account without credit or quota: no wait helps."""
    if code == 402:
        return True
    said = body[: 16 * EXCERPT].lower()
    return code == 429 and (b"insufficient_quota" in said or b"insufficient balance" in said)


def excerpt(body: bytes, scrub: Callable[[str], str] = str) -> str:
    """A server's error on one line, bounded. It is scrubbed whole: a secret that the bound cuts
    would stay in part."""
    return " ".join(scrub(words_of(body)).split())[:EXCERPT]
