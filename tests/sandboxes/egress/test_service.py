"""The egress proxy as a process of its own: who reaches what through it, over real HTTP."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from records.errors import ConfigError
from sandboxes.egress import passes
from sandboxes.egress.forwarding import ClusterProxy
from sandboxes.egress.service import EgressService, allowed_hosts
from tests.sandboxes.mcp.http_servers import serving

ROOT = Path(__file__).parents[3]
FORWARDER = ROOT / "sandboxes" / "inside" / "forward.py"
KEY = b"0123456789abcdef0123456789abcdef"


@asynccontextmanager
async def process(*arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    running = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    try:
        yield running
    finally:
        if running.returncode is None:
            running.terminate()
        await running.wait()


@asynccontextmanager
async def egress_process(folder: Path, hosts: str) -> AsyncIterator[ClusterProxy]:
    """A proxy with this file of hosts."""
    (folder / "key").write_bytes(KEY + b"\n")
    (folder / "hosts").write_text(hosts)
    files = "--key", str(folder / "key"), "--hosts", str(folder / "hosts")
    async with process("-m", "sandboxes.egress", "--listen", "127.0.0.1:0", *files) as running:
        assert running.stdout is not None
        said = (await running.stdout.readline()).decode()
        yield ClusterProxy(said.split()[-1], KEY)


@asynccontextmanager
async def forwarder(proxy: ClusterProxy, first_line: str) -> AsyncIterator[str]:
    """As in a sandbox: the URL that programs there find as their proxy."""
    port = str(await free_port())
    async with process("-I", str(FORWARDER), port, proxy.address, first_line) as running:
        assert running.stdout is not None
        assert await running.stdout.readline() == b"ready\n"
        yield f"http://127.0.0.1:{port}"


async def free_port() -> int:
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1")
    port = server.sockets[0].getsockname()[1]
    server.close()
    return port


async def fetched(url: str, proxy: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(url, proxy=proxy) as answer:
        return answer.status, await answer.text()


async def answer(request: web.Request) -> web.Response:
    return web.Response(text=f"hello from {request.host}")


@asynccontextmanager
async def internet() -> AsyncIterator[int]:
    async with serving([web.get("/{tail:.*}", answer)]) as url:
        yield int(url.rpartition(":")[2])


def test_a_server_reaches_what_it_declares_and_the_cluster_lets_through(tmp_path: Path) -> None:
    async def run() -> None:
        async with internet() as port:
            hosts = f"# ours\nshop.example:{port}=127.0.0.1\nbooks.example:{port}=127.0.0.1\n"
            async with egress_process(tmp_path, hosts) as proxy:
                declared = [f"shop.example:{port}", f"files.example:{port}"]
                line = proxy.first_line("shop", declared)
                async with forwarder(proxy, line) as way:
                    asked = f"http://shop.example:{port}/a"
                    assert await fetched(asked, way) == (200, f"hello from shop.example:{port}")
                    for host, why in (
                        ("books.example", "not among the hosts that are declared"),
                        ("files.example", "not among the hosts that this cluster lets through"),
                    ):
                        status, said = await fetched(f"http://{host}:{port}/", way)
                        assert (status, why in said) == (403, True)

    asyncio.run(run())


def test_without_a_pass_of_its_key_nobody_reaches_anything(tmp_path: Path) -> None:
    async def run() -> None:
        async with internet() as port:
            host = f"shop.example:{port}"
            async with egress_process(tmp_path, f"{host}=127.0.0.1") as proxy:
                forged = ClusterProxy(proxy.address, b"another key, as long as it must be")
                right = proxy.first_line("shop", [host])
                for line in ("", forged.first_line("shop", [host]), right[:-2], "SYNTH-PASS x.y"):
                    async with forwarder(proxy, line) as way:
                        status, said = await fetched(f"http://{host}/", way)
                        assert (status, "pass" in said) == (407, True), said
                async with forwarder(proxy, right) as way:
                    assert (await fetched(f"http://{host}/", way))[0] == 200

    asyncio.run(run())


def test_a_pass_says_what_was_written_until_it_is_over() -> None:
    text = passes.written("shop", ["a.example", "b.example:80"], KEY, now=1000.0)
    shown = passes.read(text, KEY, now=1000.0 + passes.PASS_S)
    assert (shown.name, shown.hosts) == ("shop", ("a.example", "b.example:80"))
    with pytest.raises(ValueError, match="the pass of server shop is over"):
        passes.read(text, KEY, now=1001.0 + passes.PASS_S)
    for other in (text[:-4], text.replace(".", ""), "é.x", "", f"{text[:8]}AAAA{text[12:]}"):
        with pytest.raises(ValueError, match="pass"):
            passes.read(other, KEY, now=1000.0)


def test_a_declared_address_holds_only_where_the_cluster_says_the_same() -> None:
    """Else a definition could open a private address of the cluster."""
    service = EgressService(KEY, "wiki.corp=10.1.2.3\n*")
    declared = ["wiki.corp=10.9.9.9", "metadata.example=169.254.169.254", "public.example"]
    line = ClusterProxy("127.0.0.1:1", KEY).first_line("wiki", declared).encode() + b"\r\n"
    egress = service._egress(line)
    assert egress._declared.keys() == {("public.example", 443)}
    assert egress._barred.keys() == {("wiki.corp", 443), ("metadata.example", 443)}
    assert service._egress(line) is egress


def test_a_file_of_hosts_is_read_or_its_line_is_named() -> None:
    found, every = allowed_hosts("\n# all\na.example:80 # ours\n*\n")
    assert (list(found), every) == ([("a.example", 80)], True)
    assert allowed_hosts("") == ({}, False)
    with pytest.raises(ValueError, match="line 2 of the hosts: a host is"):
        allowed_hosts("a.example\nhttps://b.example")


def test_a_short_key_is_refused() -> None:
    with pytest.raises(ConfigError, match="at least 32 bytes, got 5"):
        ClusterProxy("127.0.0.1:1", b"short").first_line("shop", ["a.example"])
