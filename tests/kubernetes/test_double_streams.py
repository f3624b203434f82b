"""exec goes byte for byte between the client and the kubelet of the Pod's node, whatever the
frames hold, and logs come from there; who asks wrongly is told so before any upgrade."""

import asyncio
import os
from typing import Any

import aiohttp
import pytest
from kubernetes.aio.client import ApiClient, Configuration, CoreV1Api
from kubernetes.aio.stream import WsApiClient

from tests.kubernetes.doubled import PODS, Asking, a_pod, against
from tests.kubernetes.echoing_kubelet import END, SUCCESS, V4, V5, bound


def opened(
    ask: Asking, query: str, protocol: str = V4
) -> "aiohttp.client._WSRequestContextManager":
    url = f"{ask.url}{PODS}/p/exec?{query}"
    return ask.session.ws_connect(url, protocols=[protocol], max_msg_size=0)


@pytest.mark.parametrize("protocol", [V4, V5])
def test_frames_of_any_bytes_come_back_as_they_were(protocol: str) -> None:
    async def test(ask: Asking) -> None:
        query = "command=true&command=a%20b%26c&stdin=true&stdout=true&stderr=true&tty=false"
        async with bound(ask) as node, opened(ask, query, protocol) as socket:
            assert socket.protocol == protocol
            assert len(ask.double.streams) == 1
            for size in (0, 1, 125, 126, 70_000, 1_000_000):
                data = os.urandom(size)
                await socket.send_bytes(b"\x00" + data)
                assert (await socket.receive()).data == b"\x01" + data
            await socket.send_bytes(END)
            assert (await socket.receive()).data == SUCCESS
            assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE
            assert node.asked == [
                (
                    "/exec/default/p/sandbox",
                    [
                        ("command", "true"),
                        ("command", "a b&c"),
                        ("input", "1"),
                        ("output", "1"),
                        ("error", "1"),
                        ("tty", "0"),
                    ],
                )
            ]

    against(test)


def test_ended_streams_are_forgotten_and_the_server_serves_on() -> None:
    async def test(ask: Asking) -> None:
        async with bound(ask):
            for _ in range(5):
                async with opened(ask, "command=x&stdin=true") as socket:
                    await socket.send_bytes(b"\x00hello")
                    await socket.receive()
            for _ in range(50):
                await ask("GET", PODS)
                if not len(ask.double.streams):
                    break
            assert len(ask.double.streams) == 0
            assert (await ask("GET", f"{PODS}/p")).code == 200

    against(test)


def test_a_dropped_stream_ends_at_both_ends_and_another_can_be_opened() -> None:
    async def test(ask: Asking) -> None:
        async with bound(ask):
            async with opened(ask, "command=x&stdin=true") as socket:
                assert (await ask.fault(kind="drop_streams")).body["struck"] == 1
                ended = (await asyncio.wait_for(socket.receive(), 10)).type
                assert ended in (aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.ERROR)
            async with opened(ask, "command=x&stdin=true") as socket:
                await socket.send_bytes(b"\x00again")
                assert (await socket.receive()).data == b"\x01again"

    against(test)


def test_streams_that_are_handed_to_another_process_are_the_same_streams() -> None:
    async def test(ask: Asking) -> None:
        async with bound(ask):
            async with opened(ask, "command=x&stdin=true") as socket:
                for size in (1, 70_000, 1_000_000):
                    data = os.urandom(size)
                    await socket.send_bytes(b"\x00" + data)
                    assert (await socket.receive()).data == b"\x01" + data
                assert len(ask.double.streams) == 0
                assert (await ask.fault(kind="drop_streams")).body["struck"] == 1
                ended = (await asyncio.wait_for(socket.receive(), 10)).type
                assert ended in (aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.ERROR)
            async with opened(ask, "command=greet") as socket:
                assert (await socket.receive()).data == b"\x01hello\n"

    against(test, stream_workers=1)


def test_a_refusal_on_exec_comes_before_the_upgrade() -> None:
    async def test(ask: Asking) -> None:
        async with bound(ask):
            await ask.fault(kind="status", resource="pods/exec", code=503)
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await opened(ask, "command=x")
            assert refused.value.status == 503
            assert (await ask("GET", f"{PODS}/p/exec", command="x")).code == 400

    against(test)


@pytest.mark.parametrize(
    ("name", "containers", "code", "text"),
    [
        ("p", ("one", "two"), 400, "a container name must be specified"),
        ("p", ("broken",), 500, "the node answered 'HTTP/1.1 500"),
        ("none", ("one",), 404, "not found"),
    ],
)
def test_what_cannot_be_opened_says_why(
    name: str, containers: tuple[str, ...], code: int, text: str
) -> None:
    async def test(ask: Asking) -> None:
        upgrade = {
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
        }
        async with (
            bound(ask, *containers),
            ask.session.get(f"{ask.url}{PODS}/{name}/exec?command=x", headers=upgrade) as answer,
        ):
            assert answer.status == code
            assert text in (await answer.json())["message"]

    against(test)


def test_a_pod_without_a_node_has_no_streams_and_one_with_a_node_its_log() -> None:
    async def test(ask: Asking) -> None:
        await ask("POST", PODS, a_pod())
        assert "host assigned" in (await ask("GET", f"{PODS}/p/log")).body["message"]
        await ask("DELETE", f"{PODS}/p")
        async with bound(ask), ask.session.get(f"{ask.url}{PODS}/p/log") as answer:
            assert await answer.text() == "a line\n"

    against(test)


def test_the_clients_own_exec_reads_what_the_node_says() -> None:
    async def test(ask: Asking) -> None:
        async with bound(ask):
            configuration = Configuration(host=ask.url)
            async with WsApiClient(configuration=configuration) as client:
                core = CoreV1Api(client)
                opening: Any = await core.connect_get_namespaced_pod_exec_without_preload_content(
                    "p", "default", command=["cat"], stdin=True, stdout=True
                )
                async with opening as socket:
                    await socket.send_bytes(b"\x00hello")
                    assert (await socket.receive()).data == b"\x01hello"
            async with ApiClient(configuration=configuration) as client:
                assert await CoreV1Api(client).read_namespaced_pod_log("p", "default") == "a line\n"

    against(test)
