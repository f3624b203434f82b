"""Who keeps others from the egress proxy of a cluster, and does not: silence, floods, lines without
an end. Over real sockets; each peer has an address of its own, as Pods have."""

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml
from aiohttp import web

from sandboxes.egress import door, passes
from sandboxes.egress import proxy as proxies
from sandboxes.egress.door import EgressDoor
from sandboxes.egress.proxy import MAX_HEAD, OTHERS, REASONS, Egress
from sandboxes.egress.service import WORD, EgressService
from tests.sandboxes.mcp.http_servers import serving

ROOT = Path(__file__).parents[3]
KEY = b"0123456789abcdef0123456789abcdef"
BAD, GOOD = "127.0.0.2", "127.0.0.3"

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Proxy:
    def __init__(self, service: EgressService, port: int, host: str) -> None:
        self.service, self.port, self.host = service, port, host
        self.first = WORD + passes.written("shop", [host], KEY).encode() + b"\r\n"

    async def connect(self, peer: str) -> Connection:
        return await asyncio.open_connection("127.0.0.1", self.port, local_addr=(peer, 0))

    async def served(self, peer: str) -> bytes:
        """What a sandbox with a pass gets of its declared host."""
        reader, writer = await self.connect(peer)
        try:
            writer.write(self.first + b"GET http://%s/ HTTP/1.1\r\n\r\n" % self.host.encode())
            return await answer_of(reader)
        finally:
            writer.close()

    @property
    def counts(self) -> dict[str, int]:
        return self.service.door.counts


async def answer_of(reader: asyncio.StreamReader) -> bytes:
    """All that comes; nothing where the connection was cut off."""
    try:
        async with asyncio.timeout(20):
            return await reader.read()
    except ConnectionError:
        return b""


async def until(true: Callable[[], bool]) -> None:
    while not true():  # noqa: ASYNC110  # nothing tells when
        await asyncio.sleep(0.01)


async def hello(_: web.Request) -> web.Response:
    return web.Response(text="hello")


@asynccontextmanager
async def proxied(
    *, most: int = 8, of_peer: int = 4, show_s: float = 1.0, declared: str | None = None
) -> AsyncIterator[Proxy]:
    """A proxy in this event loop, and a host that it leads to unless another one is declared."""
    async with serving([web.get("/{tail:.*}", hello)]) as url:
        host = declared or f"shop.example:{url.rpartition(':')[2]}"
        entry = EgressDoor(most=most, most_of_peer=of_peer, show_s=show_s)
        service = EgressService(KEY, f"{host}=127.0.0.1", entry)
        server = await asyncio.start_server(service.serve, "127.0.0.1", 0, limit=MAX_HEAD)
        try:
            yield Proxy(service, server.sockets[0].getsockname()[1], host)
        finally:
            server.close()
            await service.close()


def test_one_peers_silence_takes_its_own_places_and_no_one_elses() -> None:
    async def run() -> None:
        async with proxied() as proxy:
            silent = [await proxy.connect(BAD) for _ in range(4)]
            assert b"hello" in await proxy.served(GOOD)
            refused, _ = await proxy.connect(BAD)
            assert b" 503 " in await answer_of(refused)
            for reader, writer in silent:
                assert b" 408 " in await answer_of(reader)
                writer.close()
            assert b"hello" in await proxy.served(BAD), "its places are free again"
            assert proxy.counts == {door.LET_IN: 2, door.TOO_MANY_OF_PEER: 1, door.LATE: 4}

    asyncio.run(run())


def test_a_byte_now_and_then_is_no_longer_time() -> None:
    async def run() -> None:
        async with proxied() as proxy:
            reader, writer = await proxy.connect(BAD)
            begun = asyncio.get_running_loop().time()

            async def drip() -> None:
                for byte in proxy.first:
                    writer.write(bytes([byte]))
                    await asyncio.sleep(0.1)

            dripping = asyncio.create_task(drip())
            assert (await answer_of(reader))[9:12] in (b"408", b"")  # it may still be writing
            dripping.cancel()
            writer.close()
            assert asyncio.get_running_loop().time() - begun < len(proxy.first) * 0.1
            assert proxy.counts == {door.LATE: 1}

    asyncio.run(run())


def test_a_flood_of_one_peer_is_refused_while_others_are_served() -> None:
    async def run() -> None:
        async with proxied(most=64, of_peer=8, show_s=30) as proxy:

            async def flood() -> None:
                opened = await asyncio.gather(*(proxy.connect(BAD) for _ in range(50)))
                kept.extend(opened)

            kept: list[Connection] = []
            for _ in range(8):
                await flood()
                assert b"hello" in await proxy.served(GOOD)
            assert proxy.counts == {door.LET_IN: 8, door.TOO_MANY_OF_PEER: 400 - 8}
            for _, writer in kept:
                writer.close()

    asyncio.run(run())


def test_all_peers_together_have_so_many_and_then_have_them_again() -> None:
    async def run() -> None:
        async with proxied() as proxy:
            silent = [await proxy.connect(f"127.0.1.{n}") for n in range(1, 9)]
            await until(lambda: proxy.service.door._open == 8)
            refused, _ = await proxy.connect(GOOD)
            assert b" 503 " in await answer_of(refused)
            for _, writer in silent:
                writer.close()
            await until(lambda: proxy.service.door._open == 0)
            assert b"hello" in await proxy.served(GOOD)
            assert proxy.counts == {door.LET_IN: 1, door.TOO_MANY: 1, door.GONE: 8}
            await until(lambda: not proxy.service.door._inside)  # of peers that are gone

    asyncio.run(run())


def test_a_first_line_without_an_end_is_cut_off() -> None:
    async def run() -> None:
        async with proxied(show_s=30) as proxy:
            for line in (b"A" * (1 << 20), WORD + b"A" * door.LONGEST_LINE + b"\r\n"):
                reader, writer = await proxy.connect(BAD)
                writer.write(line)
                assert (await answer_of(reader))[9:12] in (b"431", b"")
                writer.close()
            assert proxy.counts == {door.LONG: 2}
            assert b"hello" in await proxy.served(GOOD)

    asyncio.run(run())


def test_a_head_without_an_end_is_refused_after_the_pass_too() -> None:
    async def run() -> None:
        async with proxied() as proxy:
            reader, writer = await proxy.connect(BAD)
            writer.write(proxy.first + b"GET http://a/ HTTP/1.1\r\n" + b"X: y\r\n" * (1 << 17))
            assert (await answer_of(reader))[9:12] in (b"431", b"")
            writer.close()
            (egress,) = proxy.service._of_pass.values()
            assert list(egress.refusals) == [f"the request's head is longer than {MAX_HEAD} bytes"]

    asyncio.run(run())


def test_a_pod_that_is_gone_gives_its_place_back_though_nobody_ever_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(proxies, "HALF_OPEN_S", 0.5)

    async def run() -> None:
        over = asyncio.Event()

        async def silent(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await over.wait()
            writer.close()

        upstream = await asyncio.start_server(silent, "127.0.0.1", 0)
        host = f"silent.example:{upstream.sockets[0].getsockname()[1]}"
        async with proxied(declared=host) as proxy:
            reader, writer = await proxy.connect(BAD)
            writer.write(proxy.first + b"CONNECT %s HTTP/1.1\r\n\r\n" % host.encode())
            assert b" 200 " in await reader.readuntil(b"\r\n\r\n")
            writer.close()
            await until(lambda: proxy.service.door._open == 0)
            over.set()
        upstream.close()

    asyncio.run(run())


def test_a_log_is_no_place_to_fill(caplog: pytest.LogCaptureFixture) -> None:
    entry = EgressDoor(most=1, most_of_peer=1)
    assert entry.enter(GOOD) is None
    with caplog.at_level(logging.INFO):
        for number in range(1000):
            assert entry.enter(f"10.0.{number % 250}.1") is not None
            assert entry.enter(GOOD) is not None
            entry.refused(door.GONE, GOOD, "a probe")
    assert entry.counts == {door.TOO_MANY: 1000, door.TOO_MANY_OF_PEER: 1000, door.GONE: 1000}
    said = [record.getMessage() for record in caplog.records]
    assert [line.split(", ")[1] for line in said] == [door.TOO_MANY, door.TOO_MANY_OF_PEER]
    assert set(entry._inside) == {GOOD}


def test_what_a_program_asks_for_fills_neither_counts_nor_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    egress = Egress("shop", ["shop.example"])
    for number in range(3 * REASONS):
        egress._refused(f"h{number}\x1b[2J\x85.example:443 is not declared")
    assert len(egress.refusals) == REASONS + 1
    assert egress.refusals.total() == 3 * REASONS
    assert egress.refusals[OTHERS] == 2 * REASONS
    said = "".join(record.getMessage() for record in caplog.records)
    assert "h7?[2J?.example:443" in said
    assert len(caplog.records) == REASONS + 4, "each reason once, the rest at 1, 10, 100, 1000"


@pytest.mark.parametrize("given", [("--most-of-peer", "0"), ("--most", "5")])
def test_limits_that_let_nobody_in_are_refused(tmp_path: Path, given: tuple[str, str]) -> None:
    (tmp_path / "key").write_bytes(KEY)
    (tmp_path / "hosts").write_text("")
    argv = ["-m", "sandboxes.egress", "--key", str(tmp_path / "key")]
    argv += ["--hosts", str(tmp_path / "hosts"), *given]

    async def run() -> str:
        process = await asyncio.create_subprocess_exec(
            sys.executable, *argv, cwd=ROOT, stderr=asyncio.subprocess.PIPE
        )
        _, said = await process.communicate()
        return said.decode()

    assert "at least one connection of a peer" in asyncio.run(run())


def test_the_proxys_pod_has_the_memory_of_its_connections() -> None:
    text = (ROOT / "deploy" / "kubernetes" / "base" / "egress.yaml").read_text()
    (deployment,) = [each for each in yaml.safe_load_all(text) if each["kind"] == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    megabytes = int(container["resources"]["limits"]["memory"].removesuffix("Mi"))
    assert megabytes >= door.MOST / 2 + 64
