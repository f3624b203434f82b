"""One exec as the node's end of a websocket: channels of bytes, and how the command ended.

Subprotocol v4 has no way to say that stdin ends but the end of the stream; v5 has.
"""

import asyncio
from collections.abc import AsyncIterator

import orjson
from aiohttp import WSMsgType, web

from tests.kubernetes.players.objects import Obj

STDIN, STDOUT, STDERR, ERROR, CLOSE = 0, 1, 2, 3, 255
V4, V5 = "v4.channel.k8s.io", "v5.channel.k8s.io"
PIECE = 32 << 10
"""Bytes in one message to the client, as container runtimes copy them."""

NOT_FOUND = "executable file not found in $PATH"


class ExecSession:
    def __init__(self, socket: web.WebSocketResponse, request: web.Request) -> None:
        self._socket, self._request = socket, request
        query = request.query
        self.command: list[str] = query.getall("command", [])
        self.stdin = flag(query.get("input", query.get("stdin")))
        self._task = asyncio.current_task()

    async def incoming(self) -> AsyncIterator[bytes]:
        """What the client writes to stdin, until it ends that or the stream."""
        async for message in self._socket:
            if message.type is not WSMsgType.BINARY or not message.data:
                continue
            channel = message.data[0]
            if channel == STDIN:
                yield message.data[1:]
            elif channel == CLOSE and message.data[1:] == bytes([STDIN]):
                return

    async def send(self, channel: int, data: bytes) -> None:
        """ConnectionError where the client is gone."""
        head = bytes([channel])
        for at in range(0, len(data), PIECE):
            await self._socket.send_bytes(head + data[at : at + PIECE])

    async def exit(self, code: int) -> None:
        await self._end(ended_with(code))

    async def fail(self, why: str) -> None:
        await self._end({"status": "Failure", "reason": "InternalError", "code": 500}, why)

    async def _end(self, status: Obj, message: str = "") -> None:
        told = {"metadata": {}, **status}
        if message:
            told["message"] = message
        await self._socket.send_bytes(bytes([ERROR]) + orjson.dumps(told))
        await self._socket.close()

    def abort(self) -> None:
        """Break the stream without a word, as a lost node does."""
        if (transport := self._request.transport) is not None:
            transport.abort()
        if self._task is not None:
            self._task.cancel()


def flag(text: str | None) -> bool:
    return text in ("1", "true")


def ended_with(code: int) -> Obj:
    """The Status that tells of a command's end."""
    if code == 0:
        return {"status": "Success"}
    return {
        "status": "Failure",
        "reason": "NonZeroExitCode",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


def not_started(command: list[str], why: str = NOT_FOUND) -> str:
    """What a container runtime says of a command that it cannot start."""
    return (
        "error executing command in container: failed to exec in container: failed to start exec: "
        "OCI runtime exec failed: exec failed: unable to start container process: "
        f'exec: "{command[0] if command else ""}": {why}: unknown'
    )
