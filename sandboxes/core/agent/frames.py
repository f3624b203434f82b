"""What the agent and the host agree on: how a frame looks, and how much may be on its way.

A frame is two lengths, a header and a body. The header is a JSON object, the body is bytes: stdin,
output, a file. The first frame on each stream is a greeting:

    host   {"op": "hello", "version": 1, "token": ..., "holder": ..., "adopt": false, "seen": 0}
    agent  {"event": "hello", "version": 1, "seen": 0, "jobs": []}
    agent  {"event": "refused", "reason": ...}        the stream ends

Refused are another version, another token, and a holder in whose place another one has adopted the
sandbox since. "jobs" are the commands that run, and those whose end the host has not confirmed.
Every later header has "n", its number from 1 in its direction, and "seen", the last number that its
sender got. What the other end has not seen is repeated on the next stream, so that no stream's end
loses or doubles a request or an answer. Requests carry "op" and an "id" that their answers repeat.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VERSION = 1

HEADER = 8
"""Bytes before each frame: two lengths, big-endian. `struct` would cost more to import."""

CHUNK = 65536
WINDOW = 1 << 20
"""Bytes of a server's output that may be on their way to the host, not yet read there."""

UNSEEN_FRAMES, UNSEEN_BYTES = 64, 1 << 18
"""After so many frames, or bytes of bodies, each end tells the other what it has seen."""


def frame(head: bytes, body: bytes = b"") -> bytes:
    return len(head).to_bytes(4, "big") + len(body).to_bytes(4, "big") + head + body


def lengths(data: bytes | bytearray) -> tuple[int, int]:
    """Of a frame's head and body, from the first bytes of it."""
    return int.from_bytes(data[:4], "big"), int.from_bytes(data[4:HEADER], "big")


class JsonContext:
    """How `_json` reads. The module `json` around it imports regular expressions and enums, which
    would take longer than everything else that the agent does at its start."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float, parse_int, parse_constant = float, int, float
    memo: dict[str, str] = {}  # noqa: RUF012


try:
    from _json import encode_basestring_ascii as quoted
    from _json import make_scanner

    _scan = make_scanner(JsonContext())  # pyright: ignore[reportArgumentType]
except ImportError:  # a Python without the part in C
    import json

    quoted = json.dumps
    _scan = json.JSONDecoder().scan_once  # pyright: ignore[reportAttributeAccessIssue]


def loaded(data: bytes) -> dict[str, Any]:
    """A header, which the host wrote and no program inside could."""
    return _scan(data.decode(), 0)[0]


def dumped(header: dict[str, Any]) -> bytes:
    """A flat object of texts, whole numbers, truths and lists of whole numbers."""
    parts = []
    for key, value in header.items():
        if isinstance(value, str):
            text = quoted(value)
        elif isinstance(value, list):
            text = "[" + ",".join(map(str, value)) + "]"
        else:
            text = str(value).lower()
        parts.append(f'"{key}":{text}')
    return ("{" + ",".join(parts) + "}").encode()
