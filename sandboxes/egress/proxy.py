"""The only way out of a sandboxed server: a proxy of ours, outside, that knows the declared hosts.

A sandbox has no network. A server that declares hosts finds a forwarder on its own loopback
(`inside/forward.py`), which hands every connection through a Unix socket to this proxy. The proxy
reads a name and a port (HTTP `CONNECT`, or a plain request with a whole address), compares them
with the list, resolves the name itself and connects; what is not declared gets 403. So no packet of
the sandbox is ever routed, and no name is resolved inside. On a cluster the forwarder connects to
the same proxy as a process of its own (`service`), the one address that its Pod reaches.

What it does not see: the inside of TLS. Whoever may reach a host may tell it anything, and a host
that serves many names (a content network) may be asked for another of them. Programs that ignore
the usual proxy variables reach nothing.
"""

import asyncio
import contextlib
import ipaddress
import itertools
import logging
import re
import socket
from base64 import b64encode
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import urlsplit

from records.errors import TransientError
from sandboxes.core.owners import own_folder

log = logging.getLogger(__name__)

HTTPS = 443
MAX_HEAD = 64 << 10
HEAD_S, CONNECT_S = 30.0, 15.0
LOOKUP_S = 15.0
CHUNK = 64 << 10
AT_ONCE = 64
"""Connections of one server at the same time; further ones wait."""

REASONS, OTHERS = 500, "for further reasons"
"""Why connections were refused is counted by so many reasons, and the rest together: a program that
asks for one host after another would else fill our memory."""

WHY_CHARS = 500

ENTRY = re.compile(
    r"(?P<host>[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:]+\])"
    r"(?::(?P<port>[0-9]{1,5}))?(?:=(?P<address>[0-9a-f.:]+))?"
)

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Destination(NamedTuple):
    """A declared host: `NAME`, `NAME:PORT` (443 without) or `NAME:PORT=ADDRESS`."""

    host: str
    port: int
    address: Address | None
    """Where it is, if it is not looked up: then it may be a private address, too."""


class UpstreamProxy(NamedTuple):
    """A proxy that leads on, of the user's own settings."""

    host: str
    port: int
    scheme: str
    """How it is spoken to: http or https."""

    user: str | None
    """`USER:PASSWORD`, which nothing inside is told."""


def destination(entry: str) -> Destination:
    """ValueError, saying what is allowed, for an entry that names no host."""
    match = ENTRY.fullmatch(entry)
    port = int(match["port"] or HTTPS) if match else 0
    if match is None or not 0 < port < 65536:
        raise ValueError(
            f"a host is api.example.com (port {HTTPS}), api.example.com:8443, or with the address "
            f"where it is, wiki.corp=10.1.2.3; got {entry!r}"
        )
    host = match["host"].strip("[]")
    try:
        known = match["address"] or (host if is_address(host) else None)
        return Destination(host, port, ipaddress.ip_address(known) if known else None)
    except ValueError as error:
        raise ValueError(f"host {entry!r}: {error}") from error


def is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


class RefusedError(Exception):
    """The connection is not made; the message goes to the program inside."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class Egress:
    """The proxy of one server. `socket` is where it listens while `open_egress` is open."""

    def __init__(
        self,
        name: str,
        hosts: Iterable[str],
        *,
        clean: Callable[[str], str] = str,
        private: bool = False,
        upstream: Mapping[tuple[str, int], "UpstreamProxy"] = MappingProxyType({}),
        barred: Mapping[tuple[str, int], str] = MappingProxyType({}),
    ) -> None:
        """`clean` takes secrets out of what is logged: a name that is asked for may hold one.
        `private`: the declared names may lead to private addresses, as those of the user's own
        settings do. `upstream`: the proxies through which some of them are reached. `barred`: names
        and ports that somebody else keeps closed, each with what is said of it."""
        self.name, self._clean = name, clean
        self._private, self._upstream, self._barred = private, upstream, barred
        declared = [destination(host) for host in hosts]
        self._declared = {(one.host, one.port): one.address for one in declared}
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._serving: set[asyncio.Task[None]] = set()
        self._closed = False
        self.passed: Counter[str] = Counter()
        """Connections made, by host and port."""
        self.refusals: Counter[str] = Counter()
        """Connections not made, by what the program inside was told."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection from inside, to its end."""
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        try:
            async with self._slots:
                if not self._closed:
                    await self._tunnel(reader, writer)
        except asyncio.CancelledError:
            if not self._closed:
                raise
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            pass  # one end went away, or never said what it wants
        finally:
            self._serving.discard(task)
            writer.close()

    async def close(self) -> None:
        """End every connection that is open: none outlives the server that it was for."""
        self._closed = True
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def _tunnel(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            wanted = request_of(await head_of(reader))
            out_reader, out_writer = await self._connected(wanted.host, wanted.port)
        except RefusedError as error:
            self._refused(self._clean(str(error)))
            said = f"{error}\n".encode()
            writer.write(b"HTTP/1.1 %d Refused\r\ncontent-type: text/plain\r\n" % error.status)
            writer.write(b"content-length: %d\r\nconnection: close\r\n\r\n" % len(said) + said)
            await writer.drain()
            return
        try:
            out_writer.write(wanted.pass_on)
            if not wanted.pass_on:
                writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
            await both(copied(reader, out_writer), copied(out_reader, writer))
        finally:
            out_writer.close()

    def _refused(self, why: str) -> None:
        """Count it; said the first time, the tenth, the hundredth. The words may be a program's."""
        why = "".join(c if c.isprintable() else "?" for c in why[:WHY_CHARS])
        if why not in self.refusals and len(self.refusals) >= REASONS:
            why = OTHERS
        self.refusals[why] += 1
        if str(self.refusals[why]).rstrip("0") == "1":
            told = "server %s: a connection was refused (%d so far): %s"
            log.warning(told, self.name, self.refusals[why], why)

    async def _connected(
        self, host: str, port: int
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if (host, port) in self._barred:
            raise RefusedError(403, self._barred[host, port])
        if (host, port) not in self._declared:
            raise RefusedError(403, f"{host}:{port} is not among the hosts that are declared")
        if (proxy := self._upstream.get((host, port))) is not None:
            found = await through(proxy, host, port)
            self.passed[f"{host}:{port}"] += 1
            return found
        known = self._declared[host, port]
        addresses = await looked_up(host, known, private=self._private)
        for address in addresses:  # connected to by number: asked again, a name may lie
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(CONNECT_S):
                    found = await asyncio.open_connection(str(address), port)
                self.passed[f"{host}:{port}"] += 1
                return found
        raise RefusedError(502, f"{host}:{port} cannot be reached")


async def head_of(reader: asyncio.StreamReader) -> bytes:
    """That of a request. RefusedError for one without an end, TimeoutError for one that does not
    come."""
    try:
        async with asyncio.timeout(HEAD_S):
            return await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError as error:
        raise RefusedError(431, f"the request's head is longer than {MAX_HEAD} bytes") from error


class Request(NamedTuple):
    host: str
    port: int
    pass_on: bytes
    """What the destination is sent first; nothing for a tunnel."""


def request_of(head: bytes) -> Request:
    """What the head of a request asks for. RefusedError for one that no proxy understands."""
    lines = head.decode("latin-1").split("\r\n")
    if any("\r" in line or "\n" in line for line in lines):  # some servers end a line there
        raise RefusedError(400, "the request has a line that does not end in CRLF")
    method, _, rest = lines[0].partition(" ")
    target, _, version = rest.partition(" ")
    try:
        parts = urlsplit(f"//{target}" if method == "CONNECT" else target)
        host, port = (parts.hostname or "").rstrip("."), parts.port or 80
    except ValueError as error:
        raise RefusedError(400, "the request has no valid address") from error
    if not host or not version.startswith("HTTP/1."):
        raise RefusedError(400, "the request is none for a proxy: CONNECT, or a whole address")
    if method == "CONNECT":
        return Request(host, port, b"")
    if parts.scheme != "http":
        raise RefusedError(400, "other schemes than http go through CONNECT")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    # one request a connection, and the name that was allowed, whatever the headers say
    name = parts.netloc.rpartition("@")[2]
    own = [f"{method} {path} HTTP/1.1", f"Host: {name}", "Connection: close"]
    skipped = ("host", "connection", "keep-alive", "proxy-connection", "proxy-authorization")
    own += [line for line in lines[1:-2] if line.partition(":")[0].strip().lower() not in skipped]
    return Request(host, port, "\r\n".join([*own, "", ""]).encode("latin-1"))


_lookups = ThreadPoolExecutor(8, thread_name_prefix="egress-lookup")
"""Threads of their own: a resolver that hangs holds one past our time limit, and would otherwise
take those in which the rest of the program waits for files."""


async def looked_up(host: str, known: Address | None, *, private: bool = False) -> list[Address]:
    """Where to connect to. A name leads to public addresses alone, unless its entry has one or
    `private` says otherwise: who owns a name could else have it lead to this machine, or to another
    behind its walls."""
    if known is not None:
        return [known]
    ask = partial(socket.getaddrinfo, host, None, type=socket.SOCK_STREAM)
    try:
        async with asyncio.timeout(LOOKUP_S):
            found = await asyncio.get_running_loop().run_in_executor(_lookups, ask)
    except (OSError, UnicodeError) as error:  # a label may be empty, or too long
        slow = isinstance(error, TimeoutError)
        why = f"cannot be looked up within {LOOKUP_S:g} s" if slow else "cannot be looked up"
        raise RefusedError(504 if slow else 502, f"{host} {why}") from error
    addresses = [ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in found]
    if allowed := [address for address in addresses if private or is_public(address)]:
        return allowed
    raise RefusedError(
        403, f"{host} leads to no public address; declare {host}=ADDRESS if that is meant"
    )


NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")
HOSTS_OWN = ipaddress.IPv4Address("168.63.129.16")
"""Public by its number, and on every machine of Azure the host that it runs on, which has the
machine's settings and certificates."""


def is_public(address: Address) -> bool:
    """Judged by the IPv4 address where an IPv6 one leads to that."""
    if isinstance(address, ipaddress.IPv6Address):
        if address in NAT64:
            return is_public(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
        if inner := address.ipv4_mapped or address.sixtofour:
            return is_public(inner)
        return address.is_global and address in GLOBAL_UNICAST
    return address.is_global and not address.is_multicast and address != HOSTS_OWN


async def through(
    proxy: UpstreamProxy, host: str, port: int
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A tunnel of another proxy. RefusedError where it makes none."""
    to = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    head = f"CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n"
    if proxy.user is not None:
        head += f"Proxy-Authorization: Basic {b64encode(proxy.user.encode()).decode()}\r\n"
    where = f"through the proxy {proxy.host}:{proxy.port}"
    try:
        async with asyncio.timeout(CONNECT_S):
            encrypted = True if proxy.scheme == "https" else None
            reader, writer = await asyncio.open_connection(proxy.host, proxy.port, ssl=encrypted)
            writer.write(f"{head}\r\n".encode())
            answer = await reader.readuntil(b"\r\n\r\n")
    except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
        raise RefusedError(502, f"{to} cannot be reached {where}") from error
    status = answer.split(b" ", 2)[1:2]
    if status != [b"200"]:
        writer.close()
        said = answer.partition(b"\r\n")[0].decode("latin-1")[:100]
        raise RefusedError(502, f"{to} cannot be reached {where}, which said {said!r}")
    return reader, writer


async def copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(CHUNK):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


HALF_OPEN_S = 600.0
"""For one direction to go on after the other one has ended: a program that is gone looks as one
that has asked and waits, and who answers may never end."""


async def both(one: Awaitable[None], other: Awaitable[None]) -> None:
    """Until both directions have ended, or one has broken. TimeoutError where one never ends."""
    tasks = [asyncio.ensure_future(one), asyncio.ensure_future(other)]
    try:
        done, going = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        async with asyncio.timeout(HALF_OPEN_S):
            await asyncio.gather(*done, *going)
    finally:
        for task in tasks:
            task.cancel()


_numbers = itertools.count()


@asynccontextmanager
async def open_egress(egress: Egress) -> AsyncIterator[Path]:
    """Listen, for as long as the block lasts, on a socket in a closed folder of this process; its
    path. TransientError where none can be made."""
    path = own_folder() / f"egress-{next(_numbers)}.sock"
    try:
        server = await asyncio.start_unix_server(egress.serve, path, limit=MAX_HEAD)
        path.chmod(0o666)  # the sandboxed user's to connect to, once it is bound into a sandbox
    except OSError as error:
        raise TransientError(f"cannot listen at {path}: {error}") from error
    try:
        yield path
    finally:
        server.close()
        path.unlink(missing_ok=True)
        await egress.close()
