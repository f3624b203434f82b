"""exec, attach and log: proxied byte for byte to the node that a Pod is bound to.

An upgraded connection leaves HTTP: what the client sends goes to the node's kubelet as it is, and
back, so no frame is unpacked here and a stream costs two transports.
"""

import asyncio
from typing import Any
from urllib.parse import quote

from aiohttp import ClientSession, web

from tests.kubernetes.double import errors
from tests.kubernetes.double.cluster import Cluster
from tests.kubernetes.double.errors import ApiError, ApiObject
from tests.kubernetes.double.kinds import NODES, PODS, Kind
from tests.kubernetes.double.rules.pods import CONTAINERS
from tests.kubernetes.double.serving.halves import Half
from tests.kubernetes.double.serving.pipes import Pipes
from tests.kubernetes.double.serving.requests import Asked

SCHEME = "synth.dev/kubelet-scheme"
"""Annotation of nodes whose kubelet speaks plain HTTP."""
PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
_HEAD_BYTES = 64 * 1024
_HOP_BY_HOP = {"host", "connection", "upgrade", "authorization", "content-length"}


class _Half(Half):
    """One that is joined here, and says when it ends."""

    def __init__(self) -> None:
        super().__init__()
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if not self.ended.done():
            self.ended.set_result(None)


class Streams:
    def __init__(self, cluster: Cluster, workers: int = 0) -> None:
        """`workers` are processes that take joined streams over (`pipes`); with none they are
        joined here."""
        self.cluster = cluster
        self._pipes = Pipes(workers)
        self._open: set[_Half] = set()
        self._session: ClientSession | None = None

    def __len__(self) -> int:
        """Those that are joined here."""
        return len(self._open)

    def drop(self) -> int:
        """Cut all streams as a lost connection does; how many there were."""
        count = len(self._open)
        for half in list(self._open):
            if half.transport is not None:
                half.transport.abort()
        return count + self._pipes.drop()

    def _place(self, asked: Asked, query: Any) -> tuple[str, int, str]:
        """Host and port of the Pod's kubelet, and the container that is meant."""
        pod_kind = self.cluster.kinds.at(PODS)
        pod = self.cluster.entry(pod_kind, asked.namespace or "", asked.name).item(pod_kind)
        node = pod["spec"].get("nodeName")
        if not node:
            raise errors.bad_request(f"pod {asked.name} does not have a host assigned")
        phase = (pod.get("status") or {}).get("phase")
        if asked.subresource != "log" and phase in ("Succeeded", "Failed"):
            raise errors.bad_request(
                f"cannot exec into a container in a completed pod; current phase is {phase}"
            )
        container = query.get("container") or _only_container(pod)
        if container not in _names(pod):
            raise errors.bad_request(f"container {container} is not valid for pod {asked.name}")
        host, port = self._kubelet(node)
        return host, port, container

    def _kubelet(self, name: str) -> tuple[str, int]:
        kind = self.cluster.kinds.at(NODES)
        node = self.cluster.entry(kind, "", name).item(kind)
        annotations = node["metadata"].get("annotations") or {}
        if annotations.get(SCHEME) != "http":
            raise errors.internal(
                f"node {name} has no annotation {SCHEME}: http, and the double speaks no TLS to "
                "kubelets"
            )
        status = node.get("status") or {}
        addresses = {a["type"]: a["address"] for a in status.get("addresses") or []}
        host = addresses.get("InternalIP") or addresses.get("Hostname")
        port = ((status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}).get("Port")
        if not host or not port:
            raise errors.internal(f"no preferred addresses found; known addresses: {addresses}")
        return host, port

    async def serve(self, request: web.Request, kind: Kind, asked: Asked) -> web.StreamResponse:
        host, port, container = self._place(asked, request.query)
        path = f"/{quote(asked.namespace or '')}/{quote(asked.name)}/{quote(container)}"
        if asked.subresource == "log":
            return await self._log(request, f"http://{host}:{port}/containerLogs{path}")
        if request.headers.get("Upgrade", "").lower() != "websocket":
            raise errors.bad_request(
                "unable to upgrade: this server takes websockets "
                f"({', '.join(PROTOCOLS)}) and no SPDY"
            )
        return await self._join(request, host, port, f"/{asked.subresource}{path}")

    async def _join(
        self, request: web.Request, host: str, port: int, path: str
    ) -> web.StreamResponse:
        """Open the kubelet's side with the client's own handshake, then join both connections."""
        client = request.transport
        assert isinstance(client, asyncio.Transport)
        kept = [
            f"{name}: {value}"
            for name, value in request.headers.items()
            if name.lower() not in _HOP_BY_HOP
        ]
        head = [
            f"GET {path}?{_kubelet_query(request.query)} HTTP/1.1",
            f"Host: {host}:{port}",
            "Connection: Upgrade",
            "Upgrade: websocket",
            *kept,
        ]
        loop = asyncio.get_running_loop()
        try:
            reader = _Answer()
            await loop.create_connection(lambda: reader, host, port)
        except OSError as e:
            raise errors.internal(f"error dialing backend: {e}") from e
        assert reader.transport is not None
        reader.transport.write("\r\n".join([*head, "", ""]).encode("latin-1"))
        answer = await reader.head
        if not answer.startswith(b"HTTP/1.1 101"):
            reader.transport.abort()
            raise _refused(answer)
        # The client's connection is taken from the HTTP server: from here on it is a pipe.
        former = client.get_protocol()
        if self._pipes:
            client.pause_reading()
            client.set_protocol(asyncio.Protocol())
            reader.transport.set_protocol(asyncio.Protocol())
            self._pipes.hand(client, reader.transport, answer + reader.taken())
            assert isinstance(former, asyncio.Protocol)
            loop.call_soon(former.connection_lost, None)
            raise asyncio.CancelledError
        ours_half = _Half()
        ours_half.transport = client
        ours_half.other, reader.other = reader, ours_half
        client.set_protocol(ours_half)
        client.write(answer)
        self._open.add(ours_half)
        reader.begin()
        try:
            await ours_half.ended
        finally:
            self._open.discard(ours_half)
            for half in (ours_half, reader):
                if half.transport is not None:
                    half.transport.abort() if half is reader else half.transport.close()
            assert isinstance(former, asyncio.Protocol)
            loop.call_soon(former.connection_lost, None)
        raise asyncio.CancelledError  # nothing more is to be answered on this connection

    async def _log(self, request: web.Request, url: str) -> web.StreamResponse:
        session = self._session or ClientSession()
        self._session = session
        query = {k: v for k, v in request.query.items() if k != "container"}
        async with session.get(url, params=query) as answer:
            response = web.StreamResponse(status=answer.status)
            response.content_type = answer.content_type
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                await response.write(chunk)
            return response

    async def close(self) -> None:
        self.drop()
        self._pipes.close()
        if self._session is not None:
            await self._session.close()


class _Answer(_Half):
    """The kubelet's side: first the head of its answer, then a half like the other."""

    def __init__(self) -> None:
        super().__init__()
        self.head: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._received = b""

    def data_received(self, data: bytes) -> None:
        if self.head.done():
            super().data_received(data)
            return
        self._received += data
        at = self._received.find(b"\r\n\r\n")
        if at >= 0 or len(self._received) > _HEAD_BYTES:
            if self.transport is not None:
                self.transport.pause_reading()  # until the other side is there
            head, self._received = self._received[: at + 4], self._received[at + 4 :]
            self.head.set_result(head)

    def taken(self) -> bytes:
        """What came after the head, which nobody has passed on yet."""
        received, self._received = self._received, b""
        return received

    def begin(self) -> None:
        if self._received:
            super().data_received(self._received)
            self._received = b""
        if self.transport is not None and not self.transport.is_closing():
            self.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.head.done():
            self.head.set_result(b"")
        super().connection_lost(exc)


def _refused(answer: bytes) -> ApiError:
    """What a node said instead of upgrading, with its code."""
    line = answer.split(b"\r\n", 1)[0].decode("latin-1", "replace")
    words = line.split()
    code = int(words[1]) if len(words) > 1 and words[1].isdigit() else 500
    text = f"unable to upgrade connection: the node answered {line!r}"
    return ApiError(code, "NotFound" if code == 404 else "InternalError", text)


def _kubelet_query(query: Any) -> str:
    """The parameters as kubelets take them: `input=1` where the API takes `stdin=true`."""
    ours = {"stdin": "input", "stdout": "output", "stderr": "error", "tty": "tty"}
    pairs = []
    for key, value in query.items():
        if key in ours:
            pairs.append(f"{ours[key]}={int(value in ('1', 'true'))}")
        elif key != "container":
            pairs.append(f"{key}={quote(value, safe='')}")
    return "&".join(pairs)


def _names(pod: ApiObject) -> list[str]:
    return [c["name"] for group in CONTAINERS for c in pod["spec"].get(group) or []]


def _only_container(pod: ApiObject) -> str:
    containers = pod["spec"]["containers"]
    noted = (pod["metadata"].get("annotations") or {}).get(
        "kubectl.kubernetes.io/default-container"
    )
    if noted:
        return noted
    if len(containers) > 1:
        names = " ".join(c["name"] for c in containers)
        raise errors.bad_request(
            f"a container name must be specified for pod {pod['metadata']['name']}, choose one "
            f"of: [{names}]"
        )
    return containers[0]["name"]
