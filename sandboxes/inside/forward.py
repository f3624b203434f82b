"""Hands TCP connections of a sandbox's own loopback to the proxy outside.

Arguments: the port to listen on; the path of the proxy's Unix socket, or its address as HOST:PORT;
and, if given, a line to say first on every connection. Says "ready" once it listens. It decides
nothing: whoever ends or replaces it has no network any more.
"""

# This program runs alone in a bare interpreter.
from __future__ import annotations

import asyncio
import sys

CHUNK = 65536


async def copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
    except OSError:
        writer.close()


async def connected(where: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if where.startswith("/"):
        return await asyncio.open_unix_connection(where)
    host, _, port = where.rpartition(":")
    return await asyncio.open_connection(host.strip("[]"), int(port))


async def main(port: str, where: str, first: str = "") -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            out_reader, out_writer = await connected(where)
        except OSError:
            writer.close()
            return
        if first:
            out_writer.write(first.encode() + b"\r\n")
        await asyncio.gather(copied(reader, out_writer), copied(out_reader, writer))
        out_writer.close()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", int(port))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await server.serve_forever()


asyncio.run(main(*sys.argv[1:]))
