"""Limits of requests and tokens in a window of time, and the headers that tell of them."""

import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from tests.doubles.double import RateForm

Clock = Callable[[], float]


@dataclass(kw_only=True)
class Quota:
    """A request is let in while the window has room for it; its tokens are charged when they are
    known, so that the last one let in may overdraw them."""

    requests: int = 1_000_000
    tokens: int = 100_000_000
    window_s: float = 60.0
    kind: Literal["fixed", "sliding"] = "fixed"
    """fixed: everything is given back when a window ends. sliding: each use after one window."""
    headers: RateForm = "openai"
    retry_after: Literal["seconds", "milliseconds", "date", "none"] = "seconds"
    """How a refusal says when to come again, if it says so."""
    clock: Clock = time.monotonic
    admitted: int = 0
    refused: int = 0
    _uses: deque[tuple[float, int, int]] = field(default_factory=deque[tuple[float, int, int]])

    def admit(self) -> str | None:
        """Count a request in, or say what it lacks: `requests` or `tokens`."""
        used_requests, used_tokens = self.used()
        if used_requests >= self.requests or used_tokens >= self.tokens:
            self.refused += 1
            return "requests" if used_requests >= self.requests else "tokens"
        self.admitted += 1
        self._uses.append((self.clock(), 1, 0))
        return None

    def charge(self, tokens: int) -> None:
        self._uses.append((self.clock(), 0, tokens))

    def used(self) -> tuple[int, int]:
        """Requests and tokens of the window that is open now."""
        now = self.clock()
        if self.kind == "fixed":
            begun = math.floor(now / self.window_s) * self.window_s
        else:
            begun = now - self.window_s + 1e-9
        while self._uses and self._uses[0][0] < begun:
            self._uses.popleft()
        return sum(use[1] for use in self._uses), sum(use[2] for use in self._uses)

    def reset_s(self, of: Literal["requests", "tokens"]) -> float:
        """Seconds until the window has room again; 0 if it has."""
        column, limit = (1, self.requests) if of == "requests" else (2, self.tokens)
        left = self.used()[column - 1]
        now = self.clock()
        if left < limit:
            return 0.0
        if self.kind == "fixed":
            return (math.floor(now / self.window_s) + 1) * self.window_s - now
        for when, *counts in self._uses:
            left -= counts[column - 1]
            if left < limit:
                return when + self.window_s - now
        return self.window_s

    def restored_s(self) -> float:
        """Seconds until nothing of the window is used."""
        self.used()
        now = self.clock()
        if not self._uses:
            return 0.0
        if self.kind == "fixed":
            return (math.floor(now / self.window_s) + 1) * self.window_s - now
        return self._uses[-1][0] + self.window_s - now

    def told(self, *, refused: bool) -> dict[str, str]:
        """The headers of an answer, and of a refusal."""
        requests, tokens = self.used()
        left = max(0, self.requests - requests), max(0, self.tokens - tokens)
        resets = self.reset_s("requests"), self.reset_s("tokens")
        headers = self._rates(left, (self.restored_s(), self.restored_s()))
        wait_s = max(resets)
        if refused and self.retry_after == "seconds":
            headers["retry-after"] = str(math.ceil(wait_s))
        elif refused and self.retry_after == "milliseconds":
            headers["retry-after-ms"] = str(math.ceil(wait_s * 1000))
        elif refused and self.retry_after == "date":
            then = datetime.fromtimestamp(time.time() + wait_s, UTC)
            headers["retry-after"] = then.strftime("%a, %d %b %Y %H:%M:%S GMT")
        return headers

    def _rates(self, left: tuple[int, int], resets: tuple[float, float]) -> dict[str, str]:
        limits = (self.requests, self.tokens)
        if self.headers == "none":
            return {}
        if self.headers == "mistral":
            return {
                "x-ratelimit-limit-req-minute": str(limits[0]),
                "x-ratelimit-remaining-req-minute": str(left[0]),
                "x-ratelimit-limit-tokens-minute": str(limits[1]),
                "x-ratelimit-remaining-tokens-minute": str(left[1]),
            }
        if self.headers == "anthropic":
            dates = [_date(time.time() + seconds) for seconds in resets]
            own = {
                f"anthropic-ratelimit-{name}-{what}": value
                for i, name in enumerate(("requests", "tokens"))
                for what, value in (
                    ("limit", str(limits[i])),
                    ("remaining", str(left[i])),
                    ("reset", dates[i]),
                )
            }
            return own | self._usual(limits, left, (dates[0], dates[1]))
        if self.headers == "azure":
            whole = (str(math.ceil(resets[0])), str(math.ceil(resets[1])))
            return self._usual(limits, left, whole)
        return self._usual(limits, left, (duration(resets[0]), duration(resets[1])))

    def _usual(
        self, limits: tuple[int, int], left: tuple[int, int], resets: tuple[str, str]
    ) -> dict[str, str]:
        return {
            f"x-ratelimit-{what}-{name}": str(values[i])
            for i, name in enumerate(("requests", "tokens"))
            for what, values in (("limit", limits), ("remaining", left), ("reset", resets))
        }


def duration(seconds: float) -> str:
    """As OpenAI writes it: `120ms`, `1s`, `1.5s`, `6m0s`, `1h0m0s`."""
    if seconds < 1:
        return f"{math.ceil(seconds * 1000)}ms"
    hours, rest = divmod(seconds, 3600)
    minutes, rest = divmod(rest, 60)
    text = f"{rest:.3f}".rstrip("0").rstrip(".") + "s"
    if hours or minutes:
        text = f"{int(minutes)}m{text}"
    return f"{int(hours)}h{text}" if hours else text


def _date(when: float) -> str:
    return datetime.fromtimestamp(when, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
