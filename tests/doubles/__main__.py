"""One double as a program of its own: `python -m tests.doubles NAME [--port PORT]`."""

import argparse
import asyncio
import sys

from tests.doubles.catalogue import DOUBLES
from tests.doubles.server import DoubleServer


async def run(name: str, port: int) -> None:
    server = DoubleServer(DOUBLES[name], port=port)
    await server.start()
    query = "&".join(f"{key}={value}" for key, value in server.double.query.items())
    sys.stdout.write(server.url + (f"?{query}" if query else "") + "\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=DOUBLES)
    parser.add_argument("--port", type=int, default=0, help="0: any that is free")
    asked = parser.parse_args()
    asyncio.run(run(asked.name, asked.port))
