"""The ways in which a hosted endpoint fails, on purpose and at declared rates.

A draw hangs on the request's digest and on how often this process has seen the request, so a
retry of the same bytes may pass, and a run of the same requests meets the same failures.
"""

from collections import OrderedDict

from records.seeds import rng_of
from synth.offline.request import ChatRequest
from synth.offline.response import Answer
from synth.offline.settings import Misbehaviour

_KINDS = ("rate_limit", "server_error", "hang", "truncated", "malformed", "prose")
_REMEMBERED = 100_000
"""Requests whose count is kept; the least recently seen is forgotten first."""
_PROSE = (
    "I would look into that for you by using one of my tools and then get back to you.",
    "Sure, let me think about this: the right thing to do here would be to use a tool.",
    "Certainly! Here is what I would do next, in plain words.",
)


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


def spoil(request: ChatRequest, answer: Answer, kind: str) -> Answer:
    """The answer as a model gets it wrong: arguments or JSON that do not parse, or only talk."""
    rng = rng_of(request.key, "spoil")
    if kind == "prose":
        return Answer(rng.choice(_PROSE))
    content = _broken(answer.content) if request.json_schema is not None else answer.content
    return Answer(content, tuple((name, _broken(text)) for name, text in answer.calls))


def _broken(text: str) -> str:
    """Python's spelling instead of JSON's, a frequent slip of models; never parses as JSON."""
    return text.replace('"', "'").removesuffix("}") + ",}"
