"""A command in a Pod whose standard streams are read and written as those of a connection.

The API server speaks websocket for it, protocol `v4.channel.k8s.io`: the first byte of each message
is a channel (0 stdin, 1 stdout, 2 stderr, 3 how it ended, a metav1.Status). Messages are bytes and
not texts: half a character may end one. stdin has no end in this protocol but that of the stream.
"""

import asyncio
import contextlib
import json
from collections import deque
from collections.abc import Sequence
from typing import Any

import aiohttp

from sandboxes.core.body import Streams
from sandboxes.kubernetes.api.answers import UNAUTHORIZED, refusal
from sandboxes.kubernetes.api.connection import CLOSED, Connection

PROTOCOL = "v4.channel.k8s.io"
STDIN, STDOUT, STDERR, STATUS = b"\0", 1, 2, 3

PIECE = 64 << 10
"""Of what is written, in one message."""

HIGH, LOW = 256 << 10, 64 << 10
"""Waiting to be sent: above it who writes waits, until it is below."""

READ_BYTES = 1 << 18
"""Read and not yet taken; twice as much, and the stream is not read."""

SAID_BYTES = 2000
"""Kept of stderr."""

CLOSE_S = 2.0
CLOSING = aiohttp.ClientWSTimeout(ws_close=CLOSE_S)  # pyright: ignore[reportCallIssue]
OPEN_S = 30.0


class ExecTransport(asyncio.Transport):
    """What is between a pair of asyncio streams and a websocket."""

    def __init__(
        self, socket: aiohttp.ClientWebSocketResponse, protocol: asyncio.StreamReaderProtocol
    ) -> None:
        super().__init__()
        self._socket, self._protocol = socket, protocol
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._full = self._closing = False
        self._reads = asyncio.Event()
        self._reads.set()
        self.said = b""
        """The end of what came on stderr."""
        self.exit_code: int | None = None
        """None where the command has not ended, or nobody can tell how."""
        self._sender: asyncio.Task[None] | None = None
        self._receiver = self._loop.create_task(self._receive())

    async def _receive(self) -> None:
        try:
            async for message in self._socket:
                if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
                    continue
                channel, data = message.data[0], message.data[1:]
                if channel == STDOUT:
                    if data:
                        self._protocol.data_received(data)
                    await self._reads.wait()
                elif channel == STDERR:
                    self.said = (self.said + data)[-SAID_BYTES:]
                elif channel == STATUS:
                    self.exit_code = exit_code(data)
                    break
        except (aiohttp.ClientError, OSError):
            pass  # as its end is
        finally:
            self._closing = True
            with contextlib.suppress(Exception):
                self._protocol.eof_received()
            with contextlib.suppress(Exception):
                self._protocol.connection_lost(None)
            await self._shut()

    async def _shut(self) -> None:
        with contextlib.suppress(aiohttp.ClientError, OSError, TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                await self._socket.close()

    async def _send(self) -> None:
        try:
            while self._waiting:
                data = self._waiting.popleft()
                await self._socket.send_bytes(STDIN + data)
                self._size -= len(data)
                if self._full and self._size < LOW:
                    self._full = False
                    self._protocol.resume_writing()
        except (aiohttp.ClientError, OSError):  # whoever reads sees the end
            self._receiver.cancel()
        finally:
            self._sender = None
            if self._closing:
                self._receiver.cancel()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._closing or not data:
            return
        view = memoryview(bytes(data))
        for start in range(0, len(view), PIECE):
            self._waiting.append(bytes(view[start : start + PIECE]))
        self._size += len(view)
        if self._size > HIGH and not self._full:
            self._full = True
            self._protocol.pause_writing()
        if self._sender is None:
            self._sender = self._loop.create_task(self._send())

    def close(self) -> None:
        """After what is written has been sent."""
        if not self._closing:
            self._closing = True
            if self._sender is None:
                self._receiver.cancel()

    def abort(self) -> None:
        self._closing = True
        self._waiting.clear()
        if self._sender is not None:
            self._sender.cancel()
        self._receiver.cancel()

    def is_closing(self) -> bool:
        return self._closing

    def pause_reading(self) -> None:
        self._reads.clear()

    def resume_reading(self) -> None:
        self._reads.set()

    def is_reading(self) -> bool:
        return self._reads.is_set()

    def can_write_eof(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return self._size

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._socket.get_extra_info(name, default)

    async def ended(self) -> int | None:
        """The command's exit code, once the stream has ended."""
        await asyncio.wait([self._receiver])
        return self.exit_code


def exit_code(status: bytes) -> int | None:
    """As the last message tells it; None for what is no exit."""
    try:
        found = json.loads(status)
        if found.get("status") == "Success":
            return 0
        causes = {each["reason"]: each["message"] for each in found["details"]["causes"]}
        return int(causes["ExitCode"])
    except (ValueError, KeyError, TypeError):
        return None


async def opened(
    connection: Connection, folder: str, pod: str, container: str, command: Sequence[str],
    *, ping_s: float | None = None,
) -> Streams:  # fmt: skip
    """Streams to a command that was started in a container; `folder` is that of the Pods. OSError
    where it cannot be reached, ConfigError where we may not."""
    if connection.closed:
        raise OSError(f"exec in Pod {pod}: the connection to the API server is closed")
    query = [("container", container), *(("command", word) for word in command)]
    query += [("stdin", "true"), ("stdout", "true"), ("stderr", "true")]
    client = connection.client
    _, url, headers, *_ = await client.param_serialize(
        "GET", f"{folder}/{pod}/exec", query_params=query, header_params={},
        auth_settings=["BearerToken"],
    )  # fmt: skip
    rest = client.rest_client
    if rest.pool_manager is None:
        rest.pool_manager = rest._create_pool_manager()  # as the client itself makes it
    settings = client.configuration
    try:
        async with asyncio.timeout(OPEN_S):
            socket = await rest.pool_manager.ws_connect(
                url, headers=headers, protocols=(PROTOCOL,), heartbeat=ping_s, max_msg_size=0,
                timeout=CLOSING, proxy=settings.proxy,
                server_hostname=settings.tls_server_name,
            )  # fmt: skip
    except aiohttp.WSServerHandshakeError as error:
        if error.status == 403:
            raise refusal(error.status, b"", f"exec in Pod {pod}") from error
        if error.status == UNAUTHORIZED:
            await connection.log_in()
        raise OSError(f"exec in Pod {pod}: the API server answers {error.status}") from error
    except (aiohttp.ClientError, TimeoutError) as error:
        raise OSError(f"exec in Pod {pod}: {error!r:.200}") from error
    except CLOSED as error:
        if not connection.closed:
            raise
        raise OSError(f"exec in Pod {pod}: {error!r:.200}") from error
    reader = asyncio.StreamReader(limit=READ_BYTES)
    protocol = asyncio.StreamReaderProtocol(reader)
    transport = ExecTransport(socket, protocol)
    protocol.connection_made(transport)
    writer = asyncio.StreamWriter(transport, protocol, reader, asyncio.get_running_loop())
    return reader, writer


async def run(
    connection: Connection, folder: str, pod: str, container: str, command: Sequence[str]
) -> tuple[int | None, bytes, bytes]:
    """Exit code, stdout and stderr of a command that needs no input. OSError as in `opened`."""
    reader, writer = await opened(connection, folder, pod, container, command)
    transport = writer.transport
    assert isinstance(transport, ExecTransport)
    try:
        out = await reader.read()
        return await transport.ended(), out, transport.said
    finally:
        writer.close()
