"""What it costs to hold many sandboxes of a cluster at once, against the double of an API server.

    SYNTH_TEST_DATA=FOLDER python benchmarks/bench_kubernetes.py [--count 10000] [--faults]

Pods are simulated: they answer the agent's frames and run nothing, so that the figures are those of
our client and of the double and its players, which share this machine with it; they say nothing of
a cluster. One JSON line for what the client needs for each claim (processor, memory, time), for the
latency of a ping with all held, beside that of one real Pod and of a local sandbox; one for what a
holder that was killed left behind. With `--faults` a line for each fault, too: what was made wrong
and what became of the sandboxes.
"""

import argparse
import asyncio
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.measured import show
from sandboxes.core.backend import Backend
from sandboxes.core.sandbox import closing
from sandboxes.kubernetes.backend import KubernetesBackend
from sandboxes.lending.leases import available
from sandboxes.local.backend import LOCAL
from tests.kubernetes.faults import FAULTS, REAL_FAULTS, backend
from tests.kubernetes.holding import TEMPLATE, holder, pinged, spread
from tests.kubernetes.leaks import left, nothing_left
from tests.kubernetes.players.real.host import unable
from tests.kubernetes.staging import Stage, staged

NODE_PODS = 512
STREAMS_OF_ONE = 5000
"""Held by one process of the double, which needs two descriptors for each."""
PINGS = 200


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--at-once", type=int, default=32, help="claims on their way")
    parser.add_argument("--warm", type=int, default=50)
    parser.add_argument("--faults", action="store_true")
    options = parser.parse_args()
    nodes = f"simulated={-(-options.count // NODE_PODS) + 2}"
    with staged(nodes=nodes, stream_workers=options.count // STREAMS_OF_ONE) as stage:
        hold(stage, options.count, options.at_once, options.warm)
    real = unable()
    with staged(nodes="simulated=2" if real else "real=1,simulated=2") as stage:
        asyncio.run(latencies(stage, real))
        if options.faults:
            for name, fault in FAULTS.items():
                show({"fault": name, "pods": "simulated", "what": asyncio.run(fault(stage))})
            for name, fault in () if real else REAL_FAULTS.items():
                show({"fault": name, "pods": "real", "what": asyncio.run(fault(stage))})


def hold(stage: Stage, count: int, at_once: int, warm: int) -> None:
    settings = stage.simulated(
        linger_s=60,
        stream_ping_s=50,
        warm=warm,
        creations_per_s=500,
        creations_burst=200,
        heartbeat_s=5,
        owner_dead_s=60,
        ready_s=600,
    )
    kind = {"pods": "simulated", "claims_of": "agent-sandbox" if stage.claims else "plain Pods"}
    process, found = holder(settings, count, at_once)
    try:
        show({"what": "held", **kind, **found})
    finally:
        process.kill()
        process.wait()
    kind_of = "sandboxclaims" if stage.claims else "pods"
    before = left(stage, found["owner"], kind_of)
    begun = time.monotonic()

    async def cleared() -> None:
        async with backend(stage, heartbeat_s=5, owner_dead_s=60) as other:
            await other.held()
            await nothing_left(stage, found["owner"])

    asyncio.run(cleared())
    show(
        {
            "what": "killed", **kind, "left_at_once": len(before),
            "left_in_the_end": len(left(stage, found["owner"])),
            "cleared_s": round(time.monotonic() - begun, 1),
        }
    )  # fmt: skip


async def latencies(stage: Stage, real: str | None) -> None:
    """Of a ping on an idle sandbox, of each kind that is here."""
    made: dict[str, Backend] = {"simulated Pod": KubernetesBackend(stage.simulated())}
    if real is None:
        made["real Pod"] = KubernetesBackend(stage.settings(stream_cpus=1))
    if available() is None:
        made["local"] = LOCAL
    for name, each in made.items():
        async with closing(await each.create(TEMPLATE)) as sandbox:
            answers = [(await pinged([sandbox]))[0] for _ in range(PINGS)]
            figure: dict[str, Any] = {"what": "ping_ms", "sandbox": name, **spread(answers)}
            show(figure)


if __name__ == "__main__":
    main()
