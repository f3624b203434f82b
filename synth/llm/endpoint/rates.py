"""Limits by the minute: what a server's headers say is left, and what a user has set.

Headers come in the forms of OpenAI (`x-ratelimit-remaining-requests`, with times such as `6m0s`),
Anthropic (`anthropic-ratelimit-requests-remaining`, with dates), and the plain ones of proxies
(`x-ratelimit-remaining`, `ratelimit-reset`).
"""

import re
import time
from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple

SMOOTH_S = 1.0
"""A limit that a user has set is spread evenly: at once goes what this many seconds allow."""

MOVES_ON_S = 2.0
"""By so much the end of a server's window may seem to move, by rounding and delay."""

LONGEST_RESET_S = 86_400.0
_A_MINUTE_S = 60.0

_PARTS = re.compile(r"([0-9.]+)(ms|us|h|m|s|d)")
_UNITS = {"d": 86_400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6}


class Left(NamedTuple):
    """What a server says of one of its limits."""

    limit: int
    remaining: int
    reset_s: float
    """Until the whole limit is there again."""


class RateHint(NamedTuple):
    requests: Left | None = None
    tokens: Left | None = None

    def aged(self, seconds: float) -> "RateHint":
        """As it is so long after the server said it."""
        return RateHint(*(left and left._replace(reset_s=left.reset_s - seconds) for left in self))


def rate_hint(headers: Mapping[str, str]) -> RateHint | None:
    """From the headers of any answer; None where they say nothing."""
    requests = (
        _left(headers, "x-ratelimit-{}-requests")
        or _left(headers, "anthropic-ratelimit-requests-{}")
        or _left(headers, "x-ratelimit-{}")
        or _left(headers, "ratelimit-{}")
    )
    tokens = _left(headers, "x-ratelimit-{}-tokens") or _left(
        headers, "anthropic-ratelimit-tokens-{}"
    )
    return RateHint(requests, tokens) if requests or tokens else None


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the server asks to wait: `retry-after-ms`, or `retry-after` as a number or a
    date. LiteLLM's proxy passes on those of the server behind it under names of its own."""
    for before in ("", "llm_provider-"):
        try:
            asked = float(headers.get(f"{before}retry-after-ms", "")) / 1000
        except ValueError:
            asked = seconds_in(headers.get(f"{before}retry-after", "") or "none")
        if asked is not None:
            return min(max(0.0, asked), LONGEST_RESET_S)
    return None


def seconds_in(text: str) -> float | None:
    """Of a number, a duration such as `1m30s`, a moment in seconds or milliseconds since 1970, or a
    date; None where it is none of them."""
    text = text.strip()
    try:
        number = float(text)
    except ValueError:
        return _seconds_of_words(text)
    if number != number or number < 0:
        return None
    if number > 1e11:  # milliseconds since 1970
        number = number / 1000 - time.time()
    elif number > 1e9:
        number -= time.time()
    return max(0.0, number)


def _seconds_of_words(text: str) -> float | None:
    parts = _PARTS.findall(text)
    if parts and "".join(n + unit for n, unit in parts) == text.replace(" ", ""):
        return sum(float(n) * _UNITS[unit] for n, unit in parts)
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            return max(0.0, read(text).timestamp() - time.time())
        except (ValueError, TypeError):
            continue
    return None


def _left(headers: Mapping[str, str], form: str) -> Left | None:
    limit, remaining, reset = (
        headers.get(form.format(what)) for what in ("limit", "remaining", "reset")
    )
    if limit is None or remaining is None:
        return None
    try:  # `100, 100;w=60` gives the limit first
        most, left = int(float(limit.split(",")[0])), int(float(remaining.split(",")[0]))
    except ValueError:
        return None
    reset_s = seconds_in(reset) if reset else None
    return Left(most, left, min(_A_MINUTE_S if reset_s is None else reset_s, LONGEST_RESET_S))


class Meter:
    """What is left of one limit. It owns no clock.

    A server's window ends at a moment, when everything is given back; or it slides, as a bucket
    that fills all the time does, and the moment that the server names moves on with each request.
    """

    def __init__(self, per_minute: int | None = None) -> None:
        """`per_minute`: a limit that a user has set; else only what a server says counts."""
        self._rate = None if per_minute is None else per_minute / 60.0
        self._burst = max(1.0, (per_minute or 0) / 60.0 * SMOOTH_S)
        self._level = self._burst
        self._at: float | None = None
        self._told: float | None = None
        """What the server says is left, less what went since."""
        self._full = 0.0
        self._ends = 0.0
        """When the whole limit is there again."""
        self._slides = False
        self._gain = 0.0
        """What a window that slides gives back in a second."""
        self._heard = 0.0

    def delay(self, now: float, amount: float) -> float:
        """Seconds until so much may go."""
        waits = [0.0]
        if self._rate is not None:
            self._refill(now)
            # an amount above the burst goes when the burst is full, and is paid back by waiting
            waits.append((min(amount, self._burst) - self._level) / self._rate)
        if self._told is not None and now < self._ends:
            lacking = min(amount, self._full) - self._left(now, self._told)
            if lacking > 0.0:
                waits.append(lacking / self._gain if self._slides else self._ends - now)
        return max(waits)

    def take(self, now: float, amount: float) -> None:
        """So much goes; a negative amount gives back."""
        if self._rate is not None:
            self._refill(now)
            self._level = min(self._burst, self._level - amount)
        if self._told is not None:
            if now >= self._ends:  # the server's next answer says what really is left
                self._told, self._ends, self._slides = self._full, now + _A_MINUTE_S, False
            self._told -= amount

    def hear(self, now: float, left: Left) -> None:
        """What an answer said; before now, if its `reset_s` is negative."""
        if left.reset_s < 0.0:
            return
        ends = now + left.reset_s
        if self._told is None or now >= self._ends or self._full != left.limit:
            self._told, self._slides, self._ends = float(left.remaining), False, ends
        else:
            self._told = min(self._left(now, self._told), left.remaining)
            self._slides = self._slides or ends > self._ends + MOVES_ON_S
            self._ends = ends if self._slides else min(ends, self._ends)
        self._full, self._heard = float(left.limit), now
        self._gain = left.limit / max(left.reset_s, SMOOTH_S)

    def _left(self, now: float, told: float) -> float:
        if not self._slides:
            return told
        return min(self._full, told + (now - self._heard) * self._gain)

    def _refill(self, now: float) -> None:
        assert self._rate is not None
        if self._at is not None:
            self._level = min(self._burst, self._level + (now - self._at) * self._rate)
        self._at = now
