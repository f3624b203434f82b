"""The ways in which a hosted endpoint fails, on purpose and at declared rates.

A draw hangs on the request's digest and on how often this process has seen the request, so a
retry of the same bytes may pass, and a run of the same requests meets the same failures.
"""

from collections import OrderedDict
from typing import Annotated, Self

from pydantic import Field, model_validator

from offline_llm.server.broken_calls import BrokenCalls
from offline_llm.server.request import ChatRequest
from offline_llm.server.response import Reply
from records.config import Config
from records.seeds import rng_of

_KINDS = ("rate_limit", "server_error", "hang", "truncated", "malformed", "prose")
_REMEMBERED = 100_000
"""Requests whose count is kept; the least recently seen is forgotten first."""
_PROSE = (
    "I would look into that for you by using one of my tools and then get back to you.",
    "Sure, let me think about this: the right thing to do here would be to use a tool.",
    "Certainly! Here is what I would do next, in plain words.",
)


Rate = Annotated[float, Field(ge=0.0, le=1.0)]


class Misbehaviour(Config):
    """Shares of chat requests that go wrong in one of these ways; together at most 1."""

    rate_limit: Rate = 0.0
    """429 with `Retry-After`."""
    server_error: Rate = 0.0
    """500 with an error in OpenAI's form."""
    hang: Rate = 0.0
    """No answer for `hang_s` seconds, then a 504."""
    truncated: Rate = 0.0
    """The body of the response ends in the middle of its JSON."""
    malformed: Rate = 0.0
    """A whole response whose structured content or call arguments are not JSON."""
    prose: Rate = 0.0
    """A whole response that talks instead of calling a tool or filling the schema."""
    hang_s: float = Field(default=30.0, ge=0.0, le=3600.0)
    """Seconds that a hanging request takes until its 504."""
    retry_after_s: float = Field(default=0.05, ge=0.0, le=3600.0)
    """Seconds that a 429 names in `Retry-After`."""
    tool_calls: BrokenCalls | None = None
    """Tool calling is broken in this way, at every request: what the probe is there to refuse."""
    verbosity: float = Field(default=1.0, ge=1.0, le=20.0)
    """Writes so many times as much: words are said again, everything else costs thoughts, which
    come as `reasoning_content`."""

    @model_validator(mode="after")
    def _is_a_share(self) -> Self:
        total = sum(getattr(self, kind) for kind in _KINDS)
        if total > 1.0:
            raise ValueError(f"the shares must add up to at most 1, got {total:g}")
        return self


class Saboteur:
    """Decides per request which failure it meets, if any."""

    def __init__(self, rates: Misbehaviour) -> None:
        self._rates = [(kind, getattr(rates, kind)) for kind in _KINDS if getattr(rates, kind) > 0]
        self._seen: OrderedDict[str, int] = OrderedDict()

    def failure_of(self, request: ChatRequest) -> str | None:
        if not self._rates:
            return None
        count = self._seen.pop(request.key, 0)
        self._seen[request.key] = count + 1
        if len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)
        draw = rng_of(request.key, "misbehave", count).random()
        for kind, rate in self._rates:
            if draw < rate:
                return kind
            draw -= rate
        return None


def spoil(request: ChatRequest, answer: Reply, kind: str) -> Reply:
    """The answer as a model gets it wrong: arguments or JSON that do not parse, or only talk."""
    rng = rng_of(request.key, "spoil")
    if kind == "prose":
        return Reply(rng.choice(_PROSE))
    content = _broken(answer.content) if request.json_schema is not None else answer.content
    return Reply(content, tuple((name, _broken(text)) for name, text in answer.calls))


def _broken(text: str) -> str:
    """Python's spelling instead of JSON's, a frequent slip of models; never parses as JSON."""
    return text.replace('"', "'").removesuffix("}") + ",}"
