"""The egress proxy as a process of its own, beside the sandboxes of a cluster.

    python -m sandboxes.egress --listen 0.0.0.0:3128 --key FILE --hosts FILE

A sandbox's forwarder opens each connection with a line that holds its pass (`passes`); then comes
what any program says to a proxy (`proxy`). What is connected to must be declared in the pass and
let through by the file of hosts, which belongs to whoever runs the cluster: a line for each host,
as definitions of servers have them, or `*` for every public host that a pass declares. An empty
file lets nothing through. A line that has an address (`wiki.corp=10.1.2.3`) is the only way to a
private one. How many connections a sandbox may have, and how long it may be silent, says `door`.
Needs nothing but Python: no package is installed for it.
"""

import asyncio
import contextlib
import logging
import signal
import socket
import sys
from argparse import ArgumentParser
from collections import OrderedDict
from pathlib import Path

from sandboxes.egress import door, passes
from sandboxes.egress.door import EgressDoor
from sandboxes.egress.proxy import MAX_HEAD, Destination, Egress, destination

WORD = b"SYNTH-PASS "
"""Before the pass, on the first line of every connection."""

EVERY = "*"
KEPT = 1000
"""Passes whose open connections are counted together; of more, the longest unused is forgotten."""

CLOSING_S = 5.0

IDLE_S, PROBE_S, PROBES = 60, 15, 4
"""Of a connection on which nothing comes: when it is asked whether its other end is there, between
two questions, and how many stay without an answer. A Pod whose node is lost says no goodbye, and
another one may get its address: its places are free again after two minutes."""

log = logging.getLogger(__name__)


def allowed_hosts(text: str) -> tuple[dict[tuple[str, int], Destination], bool]:
    """What a file of hosts lets through, by name and port, and whether every public host is among
    it. ValueError naming the line that is none."""
    found: dict[tuple[str, int], Destination] = {}
    every = False
    for number, line in enumerate(text.splitlines(), 1):
        entry = line.partition("#")[0].strip()
        if entry == EVERY:
            every = True
        elif entry:
            try:
                one = destination(entry)
            except ValueError as error:
                raise ValueError(f"line {number} of the hosts: {error}") from error
            found[one.host, one.port] = one
    return found, every


class EgressService:
    """One proxy for all sandboxes of a namespace."""

    def __init__(self, key: bytes, hosts: str, entry: EgressDoor | None = None) -> None:
        """`hosts` is the text of the file. ValueError for a short key, or a line that is none."""
        passes.check_key(key)
        self._key = key
        self.door = entry or EgressDoor()
        self._allowed, self._every = allowed_hosts(hosts)
        self._of_pass: OrderedDict[str, Egress] = OrderedDict()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, to its end."""
        peer = str((writer.get_extra_info("peername") or ("unknown",))[0])
        if (why := self.door.enter(peer)) is not None:
            refuse(writer, 503, why)
            return
        try:
            keep_asking(writer)
            if (egress := await self._shown(reader, writer, peer)) is not None:
                await egress.serve(reader, writer)
        finally:
            self.door.leave(peer)
            writer.close()

    async def _shown(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, peer: str
    ) -> Egress | None:
        """The proxy for whoever is there; None for who shows no pass, and was told so."""
        longest, within_s = door.LONGEST_LINE, self.door.show_s
        try:
            async with asyncio.timeout(within_s):
                line = await reader.readuntil(b"\r\n")
            if len(line) > longest:
                raise asyncio.LimitOverrunError("a long line", len(line))
            egress = self._egress(line)
        except ValueError as error:
            reason, status, why = door.NO_PASS, 407, str(error)
        except asyncio.LimitOverrunError:
            reason, status, why = door.LONG, 431, f"the first line is longer than {longest} bytes"
        except TimeoutError:
            reason, status, why = door.LATE, 408, f"no pass was shown within {within_s:g} s"
        except (OSError, asyncio.IncompleteReadError) as error:
            self.door.refused(door.GONE, peer, repr(error))
            return None
        else:
            self.door.counts[door.LET_IN] += 1
            return egress
        self.door.refused(reason, peer, why)
        refuse(writer, status, why)
        return None

    async def close(self) -> None:
        """End every connection that is open."""
        await asyncio.gather(*(egress.close() for egress in self._of_pass.values()))

    def _egress(self, line: bytes) -> Egress:
        """The proxy for whoever shows this pass. ValueError where it is none."""
        if not line.startswith(WORD):
            raise ValueError("the connection shows no pass; a sandbox's forwarder has to open it")
        text = line[len(WORD) :].decode("latin-1").strip()
        shown = passes.read(text, self._key)
        if (egress := self._of_pass.pop(text, None)) is None:
            egress = self._made(shown)
        self._of_pass[text] = egress
        while len(self._of_pass) > KEPT:
            self._of_pass.popitem(last=False)
        return egress

    def _made(self, shown: passes.EgressPass) -> Egress:
        hosts: list[str] = []
        barred: dict[tuple[str, int], str] = {}
        for entry in shown.hosts:
            wanted = destination(entry)
            own = self._allowed.get((wanted.host, wanted.port))
            if own is not None and wanted.address in (None, own.address):
                hosts.append(written(own))
            elif self._every and own is None and wanted.address is None:
                hosts.append(written(wanted))
            else:
                why = f"{written(wanted)} is not among the hosts that this cluster lets through"
                barred[wanted.host, wanted.port] = why
        return Egress(shown.name, hosts, barred=barred)


def refuse(writer: asyncio.StreamWriter, status: int, why: str) -> None:
    """Say why, and close: nobody waits until a peer that reads nothing has heard it. One that is
    still writing may see its connection reset instead."""
    said = f"{why}\n".encode()
    writer.write(b"HTTP/1.1 %d Refused\r\ncontent-type: text/plain\r\n" % status)
    writer.write(b"content-length: %d\r\nconnection: close\r\n\r\n" % len(said) + said)
    writer.close()


def keep_asking(writer: asyncio.StreamWriter) -> None:
    """Notice a peer that is gone without a word."""
    own = writer.get_extra_info("socket")
    with contextlib.suppress(OSError):  # it is gone already, as reading from it will show
        own.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        own.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, IDLE_S)
        own.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, PROBE_S)
        own.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, PROBES)


def written(one: Destination) -> str:
    """As a definition, or the file of hosts, has it."""
    host = f"[{one.host}]" if ":" in one.host else one.host
    return f"{host}:{one.port}" + (f"={one.address}" if one.address is not None else "")


async def run(service: EgressService, host: str, port: int) -> None:
    """Serve until the process is told to end. Says on stdout where it listens."""
    over = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, over.set)
    server = await asyncio.start_server(service.serve, host, port, limit=MAX_HEAD)
    name, bound = server.sockets[0].getsockname()[:2]
    print(f"the egress proxy listens at {name}:{bound}", flush=True)  # noqa: T201
    await over.wait()
    server.close()
    counted = ", ".join(f"{name} {count}" for name, count in sorted(service.door.counts.items()))
    log.info("the egress proxy ends; connections: %s", counted or "none")
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(CLOSING_S):
            await service.close()


def main() -> None:
    parser = ArgumentParser(prog="python -m sandboxes.egress", description="The egress proxy.")
    parser.add_argument("--listen", default="0.0.0.0:3128", metavar="HOST:PORT")
    parser.add_argument("--key", type=Path, required=True, help="file with the key of all passes")
    parser.add_argument("--hosts", type=Path, required=True, help="file of what is let through")
    parser.add_argument("--most", type=int, default=door.MOST, help="connections at once")
    parser.add_argument(
        "--most-of-peer", type=int, default=door.MOST_OF_PEER, help="of them, of one address"
    )
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    try:
        host, _, port = given.listen.rpartition(":")
        if not (host and port.isdigit() and int(port) < 65536):
            raise ValueError(f"--listen is HOST:PORT, such as 0.0.0.0:3128; got {given.listen!r}")
        key = given.key.read_bytes().strip()
        entry = EgressDoor(most=given.most, most_of_peer=given.most_of_peer)
        service = EgressService(key, given.hosts.read_text(encoding="utf-8"), entry)
    except (OSError, ValueError) as error:
        sys.exit(f"egress proxy: {error}")
    asyncio.run(run(service, host.strip("[]"), int(port)))
