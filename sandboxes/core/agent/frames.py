"""What the agent and the host agree on: how a frame looks, and how much may be on its way."""

HEADER = 8
"""Bytes before each frame: two lengths, big-endian. `struct` would cost more to import."""

CHUNK = 65536
WINDOW = 1 << 20
"""Bytes of a server's output that may be on their way to the host, not yet read there."""


def frame(head: bytes, body: bytes = b"") -> bytes:
    return len(head).to_bytes(4, "big") + len(body).to_bytes(4, "big") + head + body


def lengths(data: bytes | bytearray) -> tuple[int, int]:
    """Of a frame's head and body, from the first bytes of it."""
    return int.from_bytes(data[:4], "big"), int.from_bytes(data[4:HEADER], "big")


def flat_json(header: dict[str, int | str]) -> bytes:
    """Keys and texts are ours or the C library's: no quote, backslash or control character."""
    parts = []
    for key, value in header.items():
        text = f'"{value}"' if isinstance(value, str) else str(value).lower()
        parts.append(f'"{key}":{text}')
    return ("{" + ",".join(parts) + "}").encode()
