"""Attempts of a server with declared hosts to reach others. The control declares them."""

import socket
from collections.abc import AsyncIterator, Callable, Set
from contextlib import asynccontextmanager

from sandboxes.core.template import SandboxTemplate
from sandboxes.egress.forwarding import PORT, reaching, start_forwarder
from sandboxes.egress.proxy import Egress, open_egress
from sandboxes.local.backend import lease
from sandboxes.local.protections import Protection
from tests.sandboxes.attacks import scenes
from tests.sandboxes.attacks.attempt import (
    CAPS,
    Attempt,
    OwnPlay,
    Scene,
    Scenery,
    of_group,
    run_payload,
)

CONNECT = f"""
def attack(host, port, word):
    with socket.create_connection(("127.0.0.1", {PORT}), timeout=9) as s:
        s.sendall(f"CONNECT {{host}}:{{port}} HTTP/1.1\\r\\n\\r\\n".encode())
        status = s.recv(1000).split()[1].decode()
        if status != "200":
            raise Refused(status)
        s.sendall(word.encode())
        return "a connection"
"""

SMUGGLE = f"""
def attack(host, port, word):
    with socket.create_connection(("127.0.0.1", {PORT}), timeout=9) as s:
        head = f"GET http://{{host}}:{{port}}/{{word}} HTTP/1.1\\r\\nHost: shop.example\\r\\n\\r\\n"
        s.sendall(head.encode())
        status = s.makefile("rb").readline().split()
        if status[:1] == [b"HTTP/1.1"] and status[1] != b"200":
            raise Refused(status[1].decode())
        return "a connection"
"""


def through_proxy(declared: Callable[[str, str], str], more: Callable[[str, str], str]) -> OwnPlay:
    """With the hosts of `declared`, in the control with those of `more` as well."""

    async def play(attempt: Attempt, scene: Scene) -> str:
        host, port, _ = scene.args
        hosts = [declared(host, port)] + [more(host, port)] * scene.control
        async with (
            open_egress(Egress("attacker", hosts)) as path,
            lease(reaching(SandboxTemplate(limits=CAPS), path)) as sandbox,
        ):
            await start_forwarder(sandbox)
            return await run_payload(attempt, sandbox, scene)

    return play


def named(host: str) -> Scenery:
    """A listener on the host's loopback; arguments: a name for it, and its port."""
    base = scenes.listener(socket.AF_INET, socket.SOCK_STREAM, "127.0.0.1")

    @asynccontextmanager
    async def scene(without: Set[Protection]) -> AsyncIterator[Scene]:
        async with base(without) as found:
            yield Scene((host, *found.args[-2:]), reached=found.reached)

    return scene


def undeclared(name: str, host: str) -> Attempt:
    return attempt(
        name, mechanism="the proxy's list of hosts", refusal="403", payload=CONNECT,
        scene=named(host), guard="the list of declared hosts",
        own_play=through_proxy(lambda h, p: SHOP, lambda h, p: f"{h}:{p}=127.0.0.1"),
    )  # fmt: skip


SHOP = "shop.example:443=192.0.2.1"
attempt = of_group("declared hosts")

ATTEMPTS = [
    undeclared("a host that is not declared", "evil.example"),
    undeclared("another port of a declared host", "shop.example"),
    undeclared("a name with a declared one at its end", "evil-shop.example"),
    undeclared("a name with a declared one at its start", "shop.example.evil.example"),
    undeclared("loopback by its number", "127.0.0.1"),
    undeclared("loopback by one number", "2130706433"),
    undeclared("loopback by its IPv6 address", "[::1]"),
    attempt("another host by a plain request with a declared name in it",
            mechanism="plain HTTP through the proxy", refusal="403",
            payload=SMUGGLE, scene=named("evil.example"), guard="the list of declared hosts",
            own_play=through_proxy(lambda h, p: SHOP, lambda h, p: f"{h}:{p}=127.0.0.1")),
    attempt("the host's loopback by a declared name that leads there",
            mechanism="names that lead inward", refusal="403",
            payload=CONNECT, scene=named("localhost"), guard="names lead to public addresses alone",
            own_play=through_proxy(lambda h, p: f"{h}:{p}", lambda h, p: f"{h}:{p}=127.0.0.1")),
]  # fmt: skip
