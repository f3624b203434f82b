"""The egress proxy as a process of its own, beside the sandboxes of a cluster.

    python -m sandboxes.egress --listen 0.0.0.0:3128 --key FILE --hosts FILE

A sandbox's forwarder opens each connection with a line that holds its pass (`passes`); then comes
what any program says to a proxy (`proxy`). What is connected to must be declared in the pass and
let through by the file of hosts, which belongs to whoever runs the cluster: a line for each host,
as definitions of servers have them, or `*` for every public host that a pass declares. An empty
file lets nothing through. A line that has an address (`wiki.corp=10.1.2.3`) is the only way to a
private one. Needs nothing but Python: no package is installed for it.
"""

import asyncio
import contextlib
import logging
import signal
import sys
from argparse import ArgumentParser
from collections import OrderedDict
from pathlib import Path

from sandboxes.egress import passes
from sandboxes.egress.proxy import HEAD_S, MAX_HEAD, Destination, Egress, destination

WORD = b"SYNTH-PASS "
"""Before the pass, on the first line of every connection."""

EVERY = "*"
KEPT = 1000
"""Passes whose open connections are counted together; of more, the longest unused is forgotten."""

CLOSING_S = 5.0

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

    def __init__(self, key: bytes, hosts: str) -> None:
        """`hosts` is the text of the file. ValueError for a short key, or a line that is none."""
        passes.check_key(key)
        self._key = key
        self._allowed, self._every = allowed_hosts(hosts)
        self._of_pass: OrderedDict[str, Egress] = OrderedDict()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, to its end."""
        try:
            async with asyncio.timeout(HEAD_S):
                line = await reader.readuntil(b"\r\n")
            egress = self._egress(line)
        except ValueError as error:
            log.warning("a connection was refused: %s", error)
            said = f"{error}\n".encode()
            writer.write(b"HTTP/1.1 407 Refused\r\ncontent-type: text/plain\r\n")
            writer.write(b"content-length: %d\r\nconnection: close\r\n\r\n" % len(said) + said)
            with contextlib.suppress(OSError):
                await writer.drain()
            writer.close()
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            writer.close()  # a probe, or one that never says who it is
        else:
            await egress.serve(reader, writer)

    async def close(self) -> None:
        """End every connection that is open."""
        await asyncio.gather(*(egress.close() for egress in self._of_pass.values()))

    def _egress(self, line: bytes) -> Egress:
        """The proxy for whoever shows this pass. ValueError where it is none."""
        if not line.startswith(WORD) or len(line) > passes.LONGEST + 100:
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
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(CLOSING_S):
            await service.close()


def main() -> None:
    parser = ArgumentParser(prog="python -m sandboxes.egress", description="The egress proxy.")
    parser.add_argument("--listen", default="0.0.0.0:3128", metavar="HOST:PORT")
    parser.add_argument("--key", type=Path, required=True, help="file with the key of all passes")
    parser.add_argument("--hosts", type=Path, required=True, help="file of what is let through")
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    try:
        host, _, port = given.listen.rpartition(":")
        if not (host and port.isdigit() and int(port) < 65536):
            raise ValueError(f"--listen is HOST:PORT, such as 0.0.0.0:3128; got {given.listen!r}")
        key = given.key.read_bytes().strip()
        service = EgressService(key, given.hosts.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        sys.exit(f"egress proxy: {error}")
    asyncio.run(run(service, host.strip("[]"), int(port)))
