"""The smallest node for tests of streams: it runs nothing, and gives back what it gets."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from tests.kubernetes.doubled import PODS, Asking, a_binding, a_node, a_pod

END = b"\x00this is the end"
"""No frame of random bytes is this one."""
V4, V5 = "v4.channel.k8s.io", "v5.channel.k8s.io"
SUCCESS = b'\x03{"metadata":{},"status":"Success"}'
FAILURE = (
    b'\x03{"metadata":{},"status":"Failure","reason":"NonZeroExitCode","message":"exit 3",'
    b'"details":{"causes":[{"reason":"ExitCode","message":"3"}]}}'
)


class Kubelet:
    """Its exec gives stdin back on stdout until `END`; `greet` speaks on both, and exits 3."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, list[tuple[str, str]]]] = []
        self.port = 0

    async def exec(self, request: web.Request) -> web.StreamResponse:
        self.asked.append((request.path, list(request.query.items())))
        if request.match_info["container"] == "broken":
            return web.Response(status=500, text="no such container")
        socket = web.WebSocketResponse(protocols=(V5, V4), max_msg_size=0)
        await socket.prepare(request)
        if request.query.getall("command") == ["greet"]:
            for frame in (b"\x01hello\n", b"\x02psst\n", FAILURE):
                await socket.send_bytes(frame)
            await socket.close()
            return socket
        async for message in socket:
            data = message.data
            if data == END:
                await socket.send_bytes(SUCCESS)
                break
            await socket.send_bytes(b"\x01" + data[1:])
        await socket.close()
        return socket

    async def log(self, request: web.Request) -> web.Response:
        self.asked.append((request.path, list(request.query.items())))
        return web.Response(text="a line\n")


@asynccontextmanager
async def kubelet() -> AsyncIterator[Kubelet]:
    node = Kubelet()
    app = web.Application()
    app.router.add_get("/exec/{namespace}/{pod}/{container}", node.exec)
    app.router.add_get("/containerLogs/{namespace}/{pod}/{container}", node.log)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    node.port = runner.addresses[0][1]
    try:
        yield node
    finally:
        await runner.cleanup()


@asynccontextmanager
async def bound(ask: Asking, *containers: str) -> AsyncIterator[Kubelet]:
    """A Pod that is bound to a node which is there."""
    async with kubelet() as node:
        await ask("POST", "/api/v1/nodes", a_node("n", node.port))
        held = [{"name": name, "image": "i"} for name in containers or ("sandbox",)]
        await ask("POST", PODS, a_pod(containers=held))
        await ask("POST", f"{PODS}/p/binding", a_binding("n"))
        yield node
