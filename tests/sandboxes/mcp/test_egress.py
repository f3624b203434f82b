"""Servers with a network of declared hosts and with secrets, and what becomes of both."""

import asyncio
import logging
import os
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from pydantic import ValidationError

from records.errors import ConfigError, TransientError
from sandboxes.egress import proxy
from sandboxes.egress.proxy import (
    Egress,
    RefusedError,
    destination,
    is_public,
    looked_up,
    open_egress,
    request_of,
)
from sandboxes.lending.leases import available
from sandboxes.mcp.importing import import_server
from sandboxes.mcp.launch import server_of_command
from sandboxes.mcp.secret_values import Redactor, secret_values
from sandboxes.mcp.servers import ServerConfig
from sandboxes.mcp.session import McpServer, open_server
from tests.sandboxes.mcp.http_servers import serving

pytestmark = pytest.mark.skipif(available() is not None, reason="no sandbox can run here")

NAME, VALUE = "SHOP_API_TOKEN", 'tok/en+"0815"~Qz'
SHOP = server_of_command(f"python {Path(__file__).parent / 'reaching_server.py'}")


class Internet:
    """A web server on loopback, which stands for one anywhere."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.tokens: list[str] = []

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append((request.host, request.path_qs))
        self.tokens.append(request.headers.get("authorization", ""))
        return web.Response(text=f"hello from {request.path_qs}, {self.tokens[-1]}")


@asynccontextmanager
async def internet() -> AsyncIterator[tuple[Internet, int]]:
    there = Internet()
    async with serving([web.get("/{tail:.*}", there.answer)]) as url:
        yield there, int(url.rpartition(":")[2])


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv(NAME, VALUE)
    return VALUE


def config(**fields: Any) -> ServerConfig:
    return SHOP.model_copy(update=fields)


def on_server(test: Callable[[McpServer, Internet, int], Awaitable[None]], **fields: Any) -> None:
    """`{port}` in a host is the web server's."""

    async def run() -> None:
        async with internet() as (there, port):
            hosts = tuple(host.format(port=port) for host in fields.pop("hosts", ()))
            async with open_server(config(hosts=hosts, **fields)) as server:
                await test(server, there, port)

    asyncio.run(run())


def test_a_declared_host_is_reached_and_no_other(caplog: pytest.LogCaptureFixture) -> None:
    async def test(server: McpServer, there: Internet, port: int) -> None:
        async def fetch(url: str) -> str:
            return (await server.call("fetch", {"url": url})).text

        assert "hello from /items?n=1" in await fetch(f"http://shop.example:{port}/items?n=1")
        assert there.asked == [(f"shop.example:{port}", "/items?n=1")]
        for url in (
            f"http://other.example:{port}/",
            f"http://shop.example:{port + 1}/",
            f"http://127.0.0.1.nip.example:{port}/",
            f"http://shop.example@other.example:{port}/",
        ):
            assert "403" in (said := await fetch(url)), said
            assert "not among the hosts" in said
        assert "403" in await fetch("https://other.example/") or "Tunnel" in await fetch(
            "https://other.example/"
        )
        assert len(there.asked) == 1
        # past the proxy there is nothing: neither this machine's loopback nor a resolver
        for tool, arguments in (
            ("fetch_plainly", {"address": f"127.0.0.1:{port}"}),
            ("fetch_plainly", {"address": "192.0.2.1:80"}),
            ("look_up", {"host": "shop.example"}),
        ):
            assert (await server.call(tool, arguments)).is_error

    with caplog.at_level(logging.WARNING):
        on_server(test, hosts=("shop.example:{port}=127.0.0.1",))
    assert "other.example" in caplog.text  # so that a host that was forgotten can be declared


def test_a_server_without_hosts_has_no_proxy() -> None:
    async def test(server: McpServer, there: Internet, port: int) -> None:
        result = await server.call("fetch", {"url": f"http://127.0.0.1:{port}/"})
        assert result.is_error
        assert not there.asked

    on_server(test)


def test_a_name_that_leads_to_a_private_address_is_refused() -> None:
    async def test(server: McpServer, there: Internet, port: int) -> None:
        result = await server.call("fetch", {"url": f"http://localhost.localdomain:{port}/"})
        assert not there.asked, result

    on_server(test, hosts=("localhost:{port}", "localhost.localdomain:{port}"))
    with pytest.raises(Exception, match="no public address"):
        asyncio.run(looked_up("localhost", None))


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("8.8.8.8", True),
        ("2001:4860:4860::8888", True),
        ("64:ff9b::808:808", True),
        ("169.254.169.254", False),
        ("168.63.129.16", False),
        ("::ffff:168.63.129.16", False),
        ("239.1.1.1", False),
        ("::1", False),
        ("::ffff:127.0.0.1", False),
        ("64:ff9b::a9fe:a9fe", False),
        ("2002:a00:1::", False),
        ("fec0::1", False),
        ("ff0e::1", False),
    ],
)
def test_no_spelling_of_a_private_address_is_public(address: str, public: bool) -> None:
    assert is_public(ip_address(address)) is public


def test_a_name_that_is_none_cannot_be_looked_up() -> None:
    with pytest.raises(RefusedError, match="looked up"):
        asyncio.run(looked_up("a..b", None))


def test_a_look_up_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = threading.Event()

    def hang(*_: object, **__: object) -> list[object]:
        answered.wait(60)
        return []

    monkeypatch.setattr(proxy.socket, "getaddrinfo", hang)
    monkeypatch.setattr(proxy, "LOOKUP_S", 0.05)
    try:
        with pytest.raises(RefusedError, match=r"slow.example cannot be looked up within 0.05 s"):
            asyncio.run(looked_up("slow.example", None))
    finally:
        answered.set()


def test_no_tunnel_outlives_its_server() -> None:
    async def run() -> None:
        lost = asyncio.Event()

        async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()
            lost.set()
            writer.close()

        there = await asyncio.start_server(silent, "127.0.0.1", 0)
        port = there.sockets[0].getsockname()[1]
        shop = Egress("shop", [f"shop.example:{port}=127.0.0.1"])
        async with open_egress(shop) as path:
            reader, writer = await asyncio.open_unix_connection(path)
            writer.write(f"CONNECT shop.example:{port} HTTP/1.1\r\n\r\n".encode())
            assert b"200" in await reader.readline()
            late_reader, late = await asyncio.open_unix_connection(path)  # has yet to say a word
            while len(shop._serving) < 2:  # noqa: ASYNC110  no event tells it
                await asyncio.sleep(0)
        async with asyncio.timeout(10):
            await lost.wait()
            assert b"200" not in await reader.read()
            assert await late_reader.read() == b""
        for own in (writer, late):
            own.close()
        there.close()

    asyncio.run(run())


def test_a_tunnel_carries_bytes_both_ways_and_ends() -> None:
    async def run() -> None:
        async with internet() as (_, port):
            shop = Egress("shop", [f"shop.example:{port}=127.0.0.1"])
            async with open_egress(shop) as path:
                for host, expected in (("shop.example", b"200"), ("evil.example", b"403")):
                    reader, writer = await asyncio.open_unix_connection(path)
                    writer.write(f"CONNECT {host}:{port} HTTP/1.1\r\n\r\n".encode())
                    assert expected in await reader.readline()
                    if expected == b"200":
                        await reader.readuntil(b"\r\n")
                        writer.write(b"GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                        assert b"hello from /x" in await reader.read()
                    writer.close()
            assert (shop.passed.total(), shop.refusals.total()) == (1, 1)
            assert not path.exists()

    asyncio.run(run())


@pytest.mark.parametrize(
    "head",
    [
        b"\r\n\r\n",
        b"GET /local HTTP/1.1\r\nHost: shop.example\r\n\r\n",
        b"GET https://shop.example/ HTTP/1.1\r\n\r\n",
        b"CONNECT shop.example:99999 HTTP/1.1\r\n\r\n",
        b"CONNECT [::1 HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\r\n\r\n",
        b"GET http://shop.example/ HTTP/1.1\r\nX: 1\nHost: evil.example\r\n\r\n",
    ],
)
def test_rubbish_is_refused(head: bytes) -> None:
    with pytest.raises(Exception, match=r"request|schemes"):
        request_of(head)


def test_headers_do_not_change_where_a_plain_request_goes() -> None:
    head = b"GET http://shop.example/a HTTP/1.1\r\nHost: evil.example\r\nX: 1\r\n\r\n"
    wanted = request_of(head)
    assert (wanted.host, wanted.port) == ("shop.example", 80)
    assert wanted.pass_on.startswith(b"GET /a HTTP/1.1\r\nHost: shop.example\r\n")
    assert b"evil" not in wanted.pass_on
    assert b"\r\nX: 1\r\n\r\n" in wanted.pass_on


@pytest.mark.parametrize(
    "entry", ["", "*", "https://a.example", "a.example:0", "a.example:66000", "a=b", "A b"]
)
def test_entries_that_name_no_host_are_refused(entry: str) -> None:
    with pytest.raises(ValidationError, match="host"):
        ServerConfig(name="shop", command=("shop",), hosts=(entry,))


def test_entries_say_port_and_address() -> None:
    assert destination("a.example")[:2] == ("a.example", 443)
    assert str(destination("[::1]:80").address) == "::1"
    assert str(destination("wiki.corp:80=10.1.2.3").address) == "10.1.2.3"


def test_the_servers_process_alone_gets_the_secret(secret: str) -> None:
    async def test(server: McpServer, there: Internet, port: int) -> None:
        await server.call("fetch", {"url": f"http://shop.example:{port}/"})
        assert there.tokens == [secret]  # it works with the real one
        for argv in (["env"], ["cat", "/proc/self/environ"]):
            assert NAME.encode() not in (await server.sandbox.exec(argv)).stdout
        assert secret not in server.sandbox.template.model_dump_json()

    on_server(test, hosts=("shop.example:{port}=127.0.0.1",), secrets=(NAME,))


def test_nothing_that_comes_back_holds_the_secret(secret: str) -> None:
    async def test(server: McpServer, there: Internet, port: int) -> None:
        said = [str(await server.list_tools())]
        for tool in ("tell", "tell_encoded", "keep"):
            said.append((await server.call(tool, {})).text)
        said.append((await server.call("fetch", {"url": f"http://shop.example:{port}/"})).text)
        said.append(str(await server.state()))
        with pytest.raises(TransientError) as died:
            await server.call("whisper", {})
        said.append(str(died.value))
        redactor = Redactor({NAME: secret})
        for text in said:
            assert redactor.text(text) == text  # no spelling of it is left
        assert sum(f"[secret {NAME}]" in text for text in said) == len(said) - 1  # "kept"

    on_server(
        test,
        hosts=("shop.example:{port}=127.0.0.1",),
        secrets=(NAME,),
        writes=True,
        probes={"note": ("cat", "/workspace/kept")},
    )


@pytest.mark.slow
def test_rows_of_an_import_hold_no_secret(secret: str) -> None:
    rows = asyncio.run(import_server(config(secrets=(NAME,), samples={"tell": {}})))
    assert secret not in str(rows)
    assert f"[secret {NAME}]" in str(rows)


@pytest.mark.parametrize(
    "name", ["HTTP_PROXY", "https_proxy", "No_Proxy", "FTP_PROXY", "ssl_cert_file"]
)
def test_no_secret_is_named_like_what_the_way_out_sets(name: str) -> None:
    with pytest.raises(ValidationError, match=f"may not name {name}"):
        ServerConfig(name="shop", command=("shop",), secrets=(name,))
    with pytest.raises(ValidationError, match=f"may not name {name}"):
        ServerConfig(name="shop", command=("shop",), env={name: "x"}, hosts=("a.example",))
    ServerConfig(name="shop", command=("shop",), env={name: "x"})


def test_a_secret_that_is_no_text_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environb, NAME.encode(), b"token-\xff\xfe-0815")
    with pytest.raises(ConfigError, match=rf"shop: the secret {NAME} is no UTF-8 text") as told:
        secret_values("shop", [NAME])
    assert "0815" not in str(told.value)


@pytest.mark.parametrize("value", ["", "short"])
def test_a_missing_secret_is_named_before_anything_starts(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(NAME, value)

    async def run() -> None:
        async with open_server(config(secrets=(NAME,))):
            raise AssertionError

    with pytest.raises(ConfigError, match=NAME):
        asyncio.run(run())
    with pytest.raises(ConfigError, match=NAME):
        secret_values("shop", [NAME])


@pytest.mark.parametrize("value", [VALUE, "plain-0815-value", "\u00fcber/secret\\x", "a b&c=d%e?f"])
@pytest.mark.parametrize("before", ["", "u", "us", "usr", "user:"])
def test_every_common_spelling_is_found(value: str, before: str) -> None:
    import base64
    import json
    import urllib.parse

    redactor = Redactor({"TOKEN": value})
    raw = (before + value).encode()
    told = [
        before + value,
        json.dumps(before + value),
        json.dumps({"a": [before + value + "x"]}, ensure_ascii=False),
        urllib.parse.urlencode({"q": before + value}),
        base64.b64encode(raw + b"tail").decode(),
        base64.urlsafe_b64encode(raw).decode(),
        raw.hex().upper(),
    ]
    for text in told:
        assert "[secret TOKEN]" in redactor.text(text), text
    assert redactor.value({value: [1, None, value]}) == {
        "[secret TOKEN]": [1, None, "[secret TOKEN]"]
    }


def test_letters_that_only_match_without_case_are_redacted_too() -> None:
    assert Redactor({"TOKEN": "secret-0815"}).text("\u017fecret-0815") == "[secret TOKEN]"
    assert Redactor({"TOKEN": "\u0130-secret-08"}).text("\u0130-secret-08") == "[secret TOKEN]"


@pytest.mark.slow
def test_a_server_with_hosts_that_declares_no_writes_is_only_read() -> None:
    async def test(server: McpServer, there: Internet, port: int) -> None:
        refused = await server.call("keep", {})
        assert refused.is_error
        assert "refused" in refused.text
        assert (await server.sandbox.exec(["ls"])).stdout == b""
        assert not (await server.call("tell", {})).is_error

    on_server(test, hosts=["shop.example:{port}"])
    rows = asyncio.run(import_server(config(hosts=("shop.example",))))
    assert {row["name"] for row in rows if row["drop_reason"] == "not_read_only"} == {"keep"}
