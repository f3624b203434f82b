"""Messages between a run and its worker processes: pickles over a socket pair.

Both ends are this program, the socket has no name that anybody else could open.
"""

import asyncio
import pickle
import socket
import struct
from typing import Any

_LENGTH = struct.Struct("!Q")


class Channel:
    """One end. Messages arrive in the order in which they were sent."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def over(cls, end: socket.socket) -> "Channel":
        """In the running event loop; the socket is the channel's from now on."""
        return cls(*await asyncio.open_connection(sock=end, limit=2**20))

    def send(self, *message: Any) -> None:
        """At once, without waiting; a message to an end that is gone is lost."""
        data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
        if not self._writer.is_closing():
            self._writer.write(_LENGTH.pack(len(data)) + data)

    async def receive(self) -> tuple[Any, ...] | None:
        """The next message; None when the other end is gone."""
        try:
            (length,) = _LENGTH.unpack(await self._reader.readexactly(_LENGTH.size))
            return pickle.loads(await self._reader.readexactly(length))
        except (asyncio.IncompleteReadError, ConnectionError):
            return None

    async def flush(self) -> None:
        """Wait until what was sent has left this process."""
        await self._writer.drain()

    def close(self) -> None:
        self._writer.close()
