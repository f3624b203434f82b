"""The nodes' HTTP endpoint, to which an API server passes exec and logs on.

Errors have a kubelet's words and codes. A node that is lost breaks connections, as does a Pod that
is frozen leave them without an answer.
"""

import contextlib
import socket
import ssl

from aiohttp import web

from tests.kubernetes.players.exec_session import V4, V5, ExecSession
from tests.kubernetes.players.kubelet import Kubelet, Run

LARGEST = 16 << 20
"""Bytes of one message from a client."""


class Endpoint:
    def __init__(self, kubelet: Kubelet) -> None:
        self._kubelet = kubelet

    def add_to(self, app: web.Application) -> None:
        for place in ("/{namespace}/{pod}/{container}", "/{namespace}/{pod}/{uid}/{container}"):
            app.router.add_get("/exec" + place, self.exec)
            app.router.add_post("/exec" + place, self.exec)
        app.router.add_get("/containerLogs/{namespace}/{pod}/{container}", self.logs)
        app.router.add_get("/healthz", healthz)

    def _find(self, request: web.Request) -> Run:
        """The Pod that a request names. Refuses in a kubelet's way."""
        place = request.match_info
        try:
            run = self._kubelet.run_of(place["namespace"], place["pod"])
        except LookupError:
            raise web.HTTPNotFound(text="pod does not exist") from None
        if run.pod["spec"]["nodeName"] in self._kubelet.nodes.silent:
            if request.transport is not None:
                request.transport.abort()
            raise web.HTTPServiceUnavailable(text="the node does not answer")
        return run

    async def exec(self, request: web.Request) -> web.StreamResponse:
        run, place = self._find(request), request.match_info
        status = next((s for s in run.status.all() if s.name == place["container"]), None)
        if status is None or not status.running:
            text = f"unable to upgrade connection: container not found ({place['container']!r})"
            raise web.HTTPInternalServerError(text=text.replace("'", '"'))
        socket = web.WebSocketResponse(protocols=(V5, V4), compress=False, max_msg_size=LARGEST)
        if not socket.can_prepare(request):
            raise web.HTTPBadRequest(text="only websockets are spoken here, no SPDY")
        await socket.prepare(request)
        session = ExecSession(socket, request)
        with contextlib.suppress(ConnectionError):  # the client is gone
            await self._kubelet.exec(place["namespace"], place["pod"], place["container"], session)
        return socket

    async def logs(self, request: web.Request) -> web.Response:
        run, container = self._find(request), request.match_info["container"]
        if all(status.name != container for status in run.status.all()):
            raise web.HTTPNotFound(text=f'container "{container}" not found in pod')
        text = run.log(container)
        if (lines := request.query.get("tailLines")) is not None:
            text = b"".join(text.splitlines(keepends=True)[-int(lines) :] if int(lines) else [])
        return web.Response(body=text, content_type="text/plain")


async def healthz(_request: web.Request) -> web.Response:
    return web.Response(text="ok")


def listening(host: str, port: int) -> socket.socket:
    """A socket of a port that is ours from now on, though nobody answers on it yet."""
    made = socket.create_server((host, port), backlog=4096)
    made.setblocking(False)
    return made


async def serve(
    app: web.Application, listener: socket.socket, secured: ssl.SSLContext | None
) -> web.AppRunner:
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
    await runner.setup()
    await web.SockSite(runner, listener, ssl_context=secured, backlog=4096).start()
    return runner
