"""Hands TCP connections of a sandbox's own loopback to the proxy outside, through its Unix socket.

Arguments: the port to listen on, the socket's path. Says "ready" once it listens. It decides
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


async def main(port: str, path: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            out_reader, out_writer = await asyncio.open_unix_connection(path)
        except OSError:
            writer.close()
            return
        await asyncio.gather(copied(reader, out_writer), copied(out_reader, writer))
        out_writer.close()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", int(port))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await server.serve_forever()


asyncio.run(main(*sys.argv[1:]))
