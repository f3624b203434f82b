"""The double as a program: `python -m tests.kubernetes.double --kubeconfig FILE`.

It writes the kubeconfig, prints `ready URL`, and serves until it is killed.
"""

import argparse
import asyncio
import logging
import sys
import time
from pathlib import Path

from tests.kubernetes.double.kubeconfig import write_kubeconfig
from tests.kubernetes.double.serving.app import Double, Settings, serve_until_cancelled


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0: any that is free")
    parser.add_argument("--kubeconfig", type=Path, help="file to write for clients")
    parser.add_argument("--crds", type=Path, help="folder of custom resource definitions")
    parser.add_argument("--log", type=Path, help="file to append a JSON line for each request to")
    parser.add_argument("--state", type=Path, help="file from which a killed server goes on")
    parser.add_argument("--history", type=int, default=4096, help="events kept of each resource")
    parser.add_argument("--bookmark-s", type=float, default=5.0, help="seconds between bookmarks")
    parser.add_argument(
        "--faults", type=Path, help="file with a JSON list of faults from the start"
    )
    parser.add_argument(
        "--stream-workers", type=int, default=0, help="processes that joined streams go to"
    )
    parser.add_argument("--wait", type=float, default=0.0, help="seconds before it listens")
    return parser.parse_args()


async def run(asked: argparse.Namespace) -> None:
    double = Double(
        Settings(
            port=asked.port,
            crds=asked.crds,
            log=asked.log,
            state=asked.state,
            history=asked.history,
            bookmark_s=asked.bookmark_s,
            stream_workers=asked.stream_workers,
        )
    )
    if asked.faults is not None:
        double.faults.read(asked.faults)

    def ready() -> None:
        url = f"http://127.0.0.1:{double.port}"
        if asked.kubeconfig is not None:
            write_kubeconfig(asked.kubeconfig, url)
        sys.stdout.write(f"ready {url}\n")
        sys.stdout.flush()

    await serve_until_cancelled(double, ready)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    asked = parsed()
    time.sleep(asked.wait)
    asyncio.run(run(asked))
