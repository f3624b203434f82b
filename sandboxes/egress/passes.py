"""A pass: what a sandbox of a cluster shows the egress proxy, which then knows its declared hosts.

Whoever has the key makes passes: the process that starts servers. The proxy has the same key and
believes what a pass says, since nobody without it can write one. So each server reaches the hosts
that its own definition declares, though all share one proxy; a pass that a program inside reads is
good for nothing but what that program may reach anyway.
"""

import binascii
import hmac
import json
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple

PASS_S = 7 * 86400.0
"""How long a pass is good for: longer than any run keeps a server."""

LONGEST = 32 << 10
"""Characters of a pass."""

SHORTEST_KEY = 32


class EgressPass(NamedTuple):
    """Who may reach what, and until when."""

    name: str
    """The server's."""
    hosts: tuple[str, ...]
    """As a definition declares them (`sandboxes.egress.proxy.destination`)."""
    until: float
    """Seconds since 1970."""


def written(name: str, hosts: Sequence[str], key: bytes, *, now: float | None = None) -> str:
    """A pass for the server of this name, for its declared hosts. ValueError for a key that is too
    short, and for more hosts than a pass holds."""
    check_key(key)
    until = (time.time() if now is None else now) + PASS_S
    said = json.dumps([name, list(hosts), until], separators=(",", ":")).encode()
    whole = f"{_text(said)}.{_text(_seal(said, key))}"
    if len(whole) > LONGEST:
        raise ValueError(f"server {name} declares {len(hosts)} hosts, more than a pass can hold")
    return whole


def read(text: str, key: bytes, *, now: float | None = None) -> EgressPass:
    """What a pass says. ValueError, which repeats nothing of it, for one that nobody with the key
    wrote, and for one that is over."""
    said, _, seal = text.partition(".")
    if not text.isascii():
        raise ValueError("this is no pass")
    try:
        whole = urlsafe_b64decode(said)
        if not hmac.compare_digest(_seal(whole, key), urlsafe_b64decode(seal)):
            raise ValueError("the pass was not written with this proxy's key")
    except binascii.Error as error:
        raise ValueError("this is no pass") from error
    if text != f"{_text(whole)}.{_text(_seal(whole, key))}":  # one pass has one spelling
        raise ValueError("this is no pass")
    name, hosts, until = json.loads(whole)
    if until < (time.time() if now is None else now):
        raise ValueError(f"the pass of server {name} is over")
    return EgressPass(name, tuple(hosts), until)


def check_key(key: bytes) -> None:
    """ValueError for a key that could be guessed."""
    if len(key) < SHORTEST_KEY:
        raise ValueError(
            f"the egress proxy's key must have at least {SHORTEST_KEY} bytes, got {len(key)}; make "
            'one with: python3 -c "import secrets; print(secrets.token_hex(32))"'
        )


def _seal(said: bytes, key: bytes) -> bytes:
    return hmac.digest(key, said, sha256)


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).decode()
