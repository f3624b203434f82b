"""Faults on request: what goes wrong with the next requests that match, and how often.

Each is one JSON object, POSTed to /double/faults; GET lists them with how often each has struck.
"""

import itertools
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import orjson

from tests.kubernetes.double.errors import ApiError, ApiObject
from tests.kubernetes.double.serving.requests import Asked

AT_ONCE = ("drop_watches", "drop_streams", "compact", "restart")
ON_REQUESTS = ("status", "delay", "hang", "disconnect")
_REASONS = {
    400: "BadRequest",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


@dataclass
class Fault:
    """A kind of failure, the requests that it strikes, and how many of them."""

    kind: str
    """status, delay, hang and disconnect strike requests; the others happen at once."""
    count: int | None = 1
    """How many requests; None for all until the fault is taken back."""
    verb: str = ""
    """Empty for every verb, as for the others below."""
    resource: str = ""
    """With its subresource after a slash: `pods/exec`."""
    namespace: str = ""
    name: str = ""
    user_agent: str = ""
    """A part of the client's User-Agent."""
    code: int = 429
    retry_after_s: int | None = None
    message: str = ""
    seconds: float = 1.0
    """Of a delay; or how long a restarted server stays down."""
    number: int = 0
    struck: int = field(default=0)

    def takes(self, asked: Asked, agent: str) -> bool:
        resource = asked.plural + (f"/{asked.subresource}" if asked.subresource else "")
        return (
            (self.count is None or self.struck < self.count)
            and self.verb in ("", asked.verb)
            and self.resource in ("", resource)
            and self.namespace in ("", asked.namespace)
            and self.name in ("", asked.name)
            and self.user_agent in agent
        )

    def refusal(self) -> ApiError:
        reason = _REASONS.get(self.code, "Unknown")
        text = self.message or f"the double was asked to answer {self.code}"
        details: ApiObject = {}
        headers: dict[str, str] = {}
        if self.retry_after_s is not None:
            details["retryAfterSeconds"] = self.retry_after_s
            headers["Retry-After"] = str(self.retry_after_s)
        return ApiError(self.code, reason, text, details=details, headers=headers)


class Faults:
    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self.listed: list[Fault] = []

    def add(self, asked: Any) -> Fault:
        """Take a fault; ValueError for one that is unknown."""
        known = {f.name for f in fields(Fault)} - {"number", "struck"}
        if not isinstance(asked, dict) or set(asked) - known:
            raise ValueError(f"a fault is an object of {sorted(known)}, got {asked!r}"[:500])
        if asked.get("kind") not in (*AT_ONCE, *ON_REQUESTS):
            raise ValueError(
                f"kind must be one of {[*AT_ONCE, *ON_REQUESTS]}, got {asked.get('kind')!r}"
            )
        fault = Fault(**asked, number=next(self._numbers))
        self.listed.append(fault)
        return fault

    def read(self, path: Path) -> None:
        """Take the faults of a file, a JSON list."""
        for asked in orjson.loads(path.read_bytes()):
            self.add(asked)

    def strike(self, asked: Asked, agent: str) -> Fault | None:
        """The first fault that takes a request, counted."""
        for fault in self.listed:
            if fault.kind in ON_REQUESTS and fault.takes(asked, agent):
                fault.struck += 1
                return fault
        return None

    def clear(self) -> None:
        """Take all back; the counts stay to be read."""
        for fault in self.listed:
            fault.count = fault.struck

    def shown(self) -> list[ApiObject]:
        return [dict(vars(fault)) for fault in self.listed]
