"""What the agent and the host agree on: how a frame looks, and how much may be on its way."""

import struct

HEADER = struct.Struct(">II")
CHUNK = 65536
WINDOW = 1 << 20
"""Bytes of a server's output that may be on their way to the host, not yet read there."""


def frame(head: bytes, body: bytes = b"") -> bytes:
    return HEADER.pack(len(head), len(body)) + head + body


def flat_json(header: dict[str, int | str]) -> bytes:
    """Keys and texts are ours or the C library's: no quote, backslash or control character."""
    parts = []
    for key, value in header.items():
        text = f'"{value}"' if isinstance(value, str) else str(value).lower()
        parts.append(f'"{key}":{text}')
    return ("{" + ",".join(parts) + "}").encode()
