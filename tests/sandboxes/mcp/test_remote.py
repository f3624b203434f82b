"""Tool lists over streamable HTTP: both eras, pages, and servers that misbehave."""

import asyncio

import pytest

import sandboxes.mcp.protocol.pages
from records.errors import ConfigError, ItemError, TransientError
from sandboxes.mcp.http import token_of
from sandboxes.mcp.remote import RemoteList, checked_url, list_remote
from tests.sandboxes.mcp.http_servers import TOOLS, OldServer, official_server, old_server


def listed(server: OldServer, **options: object) -> RemoteList:
    async def go() -> RemoteList:
        async with old_server(server) as url:
            return await list_remote(url, **options)  # type: ignore[arg-type]

    return asyncio.run(go())


def test_a_stateless_server_is_asked_without_a_handshake() -> None:
    async def go() -> RemoteList:
        async with official_server() as url:
            return await list_remote(url)

    answer = asyncio.run(go())
    assert answer.protocol == "2026-07-28"
    assert [tool["name"] for tool in answer.tools] == ["find_order", "cancel_order"]
    assert answer.tools[0]["inputSchema"]["required"] == ["number"]


def test_an_older_server_is_greeted_and_read_page_by_page() -> None:
    server = OldServer()
    answer = listed(server)
    assert answer == RemoteList(TOOLS, "2025-03-26")
    handshake = server.methods.index("initialize")
    assert server.methods[handshake:] == [
        "initialize", "notifications/initialized", *["tools/list"] * 3,
    ]  # fmt: skip


def test_the_token_of_a_variable_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "abc")
    assert len(listed(OldServer(token="abc"), token=token_of("SHOP_TOKEN")).tools) == 7
    with pytest.raises(ItemError, match="bad_server_answer"):
        listed(OldServer(token="abc"))
    with pytest.raises(ConfigError, match="NO_SUCH_TOKEN, named for the token, is not set"):
        token_of("NO_SUCH_TOKEN")


def test_empty_pages_without_end_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandboxes.mcp.protocol.pages, "MAX_PAGES", 5)
    server = OldServer(manners="empty")
    with pytest.raises(ItemError, match="endless list of tools"):
        listed(server)
    assert server.methods.count("tools/list") == 5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("manners", "kind", "words"),
    [
        ("redirect", ItemError, "not followed"),
        ("hang", TransientError, "did not answer within"),
        ("flood", (ItemError, TransientError), "over 32 MiB"),
        ("packed", (ItemError, TransientError), "compressed"),
        ("prose", ItemError, "Unexpected content type"),
        ("endless", ItemError, "endless list of tools"),
        ("wrong", ItemError, "bad_server_answer"),
    ],
)
def test_what_a_server_may_do_is_bounded_and_told(
    manners: str, kind: type[Exception], words: str
) -> None:
    within_s = 1.0 if manners == "hang" else 20.0
    with pytest.raises(kind, match=words):
        listed(OldServer(manners=manners), within_s=within_s)


def test_a_server_that_is_not_there_is_transient() -> None:
    with pytest.raises(TransientError, match=r"127\.0\.0\.1 cannot be reached"):
        asyncio.run(list_remote("http://127.0.0.1:9/mcp"))


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("mcp-server-time", "no URL of a server"),
        ("ftp://example.com/mcp", "no URL of a server"),
        ("file:///etc/passwd", "no URL of a server"),
        ("http://", "no URL of a server"),
        ("http://user:word@example.com/", "must not hold a password"),
        ("http://example.com:port/", "no URL"),
        ("http://[::1/", "no URL"),
    ],
)
def test_addresses_that_are_none_are_refused(url: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        checked_url(url)
