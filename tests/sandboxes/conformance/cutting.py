"""A stream that breaks where one wants: after so many bytes of either direction."""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Iterator

from sandboxes.core.body import Streams
from sandboxes.core.sandbox import Sandbox

Connect = Callable[[], Awaitable[Streams]]


def cut(sandbox: Sandbox, bytes_until: Iterator[tuple[int, int]]) -> list[int]:
    """Break the present stream, and each of the next ones after (bytes to the agent, bytes from
    it), the last one never. The list that is returned grows by one with each stream."""
    channel, streams = sandbox._agent, list[int]()
    connect = channel._connect

    async def connect_and_cut() -> Streams:
        streams.append(len(streams))
        inside = await connect()
        if (limits := next(bytes_until, None)) is None:
            return inside
        ours, theirs = socket.socketpair()
        reader, writer = await asyncio.open_connection(sock=theirs)
        both = [
            asyncio.create_task(pump(reader, inside[1], limits[0])),
            asyncio.create_task(pump(inside[0], writer, limits[1])),
        ]
        both[0].add_done_callback(lambda _: both[1].cancel())
        both[1].add_done_callback(lambda _: both[0].cancel())
        return await asyncio.open_connection(sock=ours)

    channel._connect = connect_and_cut
    sandbox.drop_stream()
    return streams


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, most: int) -> None:
    with contextlib.suppress(OSError):
        try:
            while most and (data := await reader.read(most)):
                writer.write(data)
                await writer.drain()
                most -= len(data)
        finally:
            writer.close()
