"""What no agent and no host of ours writes to the stream between them."""

import json

from sandboxes.core.agent.frames import frame

EXIT = {"n": 1, "seen": 1, "id": 1, "event": "exit", "exit_code": 0, "stdout_bytes": 0}
WHOLE = EXIT | {"truncated": False, "timed_out": False}


def exits(**changes: object) -> bytes:
    return frame(json.dumps(WHOLE | changes).encode())


NO_FRAMES = {
    "not JSON": frame(b"{not JSON"),
    "half a JSON": frame(b'{"op": "hello", "vers'),
    "no object": frame(b"[1, 2]"),
    "no text": frame(b"\xff\xfe"),
    "nothing": frame(b""),
    "a word": frame(b"nul"),
    "a deep object": frame(b'{"id":' * 9_000),
    "a deep list": frame(b"[" * 60_000),
    "a number of 5000 digits": frame(b'{"n": 1, "seen": 1, "id": ' + b"9" * 5000 + b"}"),
    "a header of 4 GiB": b"\xff\xff\xff\xff\0\0\0\0" + bytes(5000),
    "a body of 4 GiB": b"\0\0\0\2\xff\xff\xff\xff{}" + bytes(5000),
    "a page of the web": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" + bytes(5000),
}
"""Not even the form is right, whoever reads it."""

NO_ANSWERS = {
    "an empty header": frame(b"{}"),
    "no id": frame(b'{"n": 1, "seen": 0, "event": "ok"}'),
    "an id that is an object": exits(id={"a": 1}),
    "an id that is a list": exits(id=[1]),
    "what was seen in words": exits(seen="all of it"),
    "endlessly many seen": exits(seen=float("inf")),
    "a number in words": exits(n="first"),
    "a number that is none": exits(n=float("nan")),
    "an endless number": exits(n=float("inf")),
    "a result that lacks a part": frame(json.dumps(EXIT).encode()),
    "a result with words for a number": exits(exit_code="ten"),
    "an endless exit code": exits(exit_code=float("inf")),
    "an exit code that is a list": exits(exit_code=[0]),
    "endlessly many bytes of output": exits(stdout_bytes=float("inf")),
}
"""JSON objects that answer nothing."""
