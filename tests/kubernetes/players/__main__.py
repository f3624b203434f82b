"""The players as a program. It prints `ready ADDRESS`, which is that of `control`, and plays until
it gets SIGTERM or SIGINT; what it has started ends with it, the API's objects stay."""

import argparse
import asyncio
import contextlib
import logging
import signal
import ssl
import sys
from pathlib import Path

from tests.kubernetes.players.api import from_kubeconfig
from tests.kubernetes.players.stage import CONTROLLERS, Settings, Stage


def pairs(text: str) -> dict[str, str]:
    """`a=1,b=2`"""
    return dict(part.split("=", 1) for part in text.split(",") if part)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.kubernetes.players", description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--context", help="of the kubeconfig; its current one otherwise")
    parser.add_argument(
        "--nodes", default="real=1,simulated=1", help="real=0 or 1, simulated=N (512 Pods each)"
    )
    parser.add_argument(
        "--without", default="", help=f"what the cluster has itself, of {','.join(CONTROLLERS)}"
    )
    parser.add_argument("--host", default="127.0.0.1", help="address of the nodes' endpoint")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument(
        "--certificate", type=Path, help="PEM with certificate and key: nodes speak TLS"
    )
    parser.add_argument(
        "--in-images", default="", help="TARGET=SOURCE,...: more that real Pods' images have"
    )
    parser.add_argument("--start-s", type=float, default=0.0, help="that every Pod takes to start")
    parser.add_argument("--heartbeat-s", type=float, default=10.0)
    parser.add_argument("--node-grace-s", type=float, default=40.0)
    parser.add_argument("--verbose", action="store_true")
    return parser.parse_args()


def settings_of(asked: argparse.Namespace) -> Settings:
    nodes = {kind: int(count) for kind, count in pairs(asked.nodes).items()}
    if set(nodes) - {"real", "simulated"} or nodes.get("real", 0) > 1:
        raise ValueError(f"--nodes is real=0 or 1 and simulated=N, got {asked.nodes!r}")
    without = frozenset(filter(None, asked.without.split(",")))
    if unknown := without - set(CONTROLLERS):
        raise ValueError(f"--without names {sorted(unknown)}; there are {', '.join(CONTROLLERS)}")
    secured = None
    if asked.certificate is not None:
        secured = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        secured.load_cert_chain(asked.certificate)
    return Settings(
        nodes=nodes,
        without=without,
        host=asked.host,
        port=asked.port,
        tls=secured,
        in_images=pairs(asked.in_images),
        start_s=asked.start_s,
        heartbeat_s=asked.heartbeat_s,
        node_grace_s=asked.node_grace_s,
    )


async def play(asked: argparse.Namespace) -> None:
    if sys.version_info < (3, 12):  # a thread for each process would be the default
        watcher = asyncio.PidfdChildWatcher()
        watcher.attach_loop(asyncio.get_running_loop())
        asyncio.set_child_watcher(watcher)
    api = from_kubeconfig(asked.kubeconfig, asked.context)()
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)

    def ready(address: str) -> None:
        sys.stdout.write(f"ready {address}\n")
        sys.stdout.flush()

    try:
        await Stage(api, settings_of(asked)).run(ready)
    finally:
        await api.close()


def main() -> None:
    asked = parsed()
    level = logging.DEBUG if asked.verbose else logging.WARNING
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s: %(message)s")
    logging.getLogger("players").setLevel(level)
    with contextlib.suppress(asyncio.CancelledError):
        asyncio.run(play(asked))


if __name__ == "__main__":
    main()
