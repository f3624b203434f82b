"""How an answer is delivered, or is not: what a server and the faults in it agree on."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import NoReturn

from aiohttp import web

from tests.doubles.dressing import Bill

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Fault = Callable[[web.Request, Handler], Awaitable[web.StreamResponse]]
"""What happens to a request before, after or instead of its answer."""

END = web.RequestKey("end", str)
"""Key of a request under which a fault says how its answer ends: `cut` in the middle, or `error`,
an error within the stream."""


STREAM_ERROR = (
    b"data: %s\n\n"
    % json.dumps(
        {
            "error": {"code": 502, "message": "Provider disconnected", "type": "server_error"},
            "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}],
        }
    ).encode()
)
"""How a stream ends whose model failed in the middle, as OpenRouter sends it."""


@dataclass
class Answered:
    """One answer as the server charges for it."""

    number: int
    """Of the request, from 0."""
    bill: Bill
    delivered: bool = False
    """Whether all of it was sent; what was cut off on its way is charged all the same."""


def hang_up(request: web.Request) -> NoReturn:
    """Reset the connection; no answer follows."""
    if request.transport is not None:
        request.transport.abort()
    raise ConnectionResetError("the double hung up")
