"""A process that holds many sandboxes of a cluster at once, and says what that costs it.

`python -m tests.kubernetes.holding SETTINGS COUNT AT_ONCE IDLE_S`: the settings are JSON. It prints
one JSON object once all are held and each has answered, and then pings them in rounds until it is
killed.
"""

import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sandboxes.core.sandbox import Sandbox
from sandboxes.core.template import Limits, SandboxTemplate
from sandboxes.kubernetes.backend import KubernetesBackend
from sandboxes.kubernetes.settings import KubernetesSettings

ROOT = Path(__file__).parents[2]
TEMPLATE = SandboxTemplate(limits=Limits(memory_mb=64, cpus=0.1, start_timeout_s=300))
IDLE_S = 10.0
"""For what an idle holder needs to show."""
PINGS_AT_ONCE = 64


def memory() -> int:
    """Bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def used() -> float:
    """Seconds of the processor."""
    found = resource.getrusage(resource.RUSAGE_SELF)
    return found.ru_utime + found.ru_stime


def spread(values: Sequence[float]) -> dict[str, float]:
    """In milliseconds."""
    parts = statistics.quantiles(values, n=100) if len(values) > 1 else [values[0]] * 99
    return {f"p{at}": round(1000 * parts[at - 1], 2) for at in (50, 95, 99)}


async def pinged(held: Sequence[Sandbox]) -> list[float]:
    """How long each took to answer; all have."""
    slots = asyncio.Semaphore(PINGS_AT_ONCE)

    async def one(sandbox: Sandbox) -> float:
        async with slots:
            begun = time.monotonic()
            await sandbox.ping()
            return time.monotonic() - begun

    return await asyncio.gather(*map(one, held))


async def main(settings: KubernetesSettings, count: int, at_once: int, idle_s: float) -> None:
    backend = KubernetesBackend(settings)
    session = (await backend.held()).session
    (await backend.create(TEMPLATE)).end("the way there is tried once")
    slots, waits = asyncio.Semaphore(at_once), list[float]()

    async def one() -> Sandbox:
        async with slots:
            begun = time.monotonic()
            made = await backend.create(TEMPLATE)
            waits.append(time.monotonic() - begun)
            return made

    at, cpu, size = time.monotonic(), used(), memory()
    held = await asyncio.gather(*(one() for _ in range(count)))
    took, cpu, size = time.monotonic() - at, used() - cpu, memory() - size
    at, idle = time.monotonic(), used()
    await asyncio.sleep(idle_s)
    idle = (used() - idle) / (time.monotonic() - at)
    at = time.monotonic()
    answers = await pinged(held)
    found: dict[str, Any] = {
        "owner": session.owner.name,
        "held": len(held),
        "answered": len(answers),
        "round_s": round(time.monotonic() - at, 2),
        "claims_s": round(took, 1),
        "claims_per_s": round(count / took, 1),
        "claim_ms": spread(waits),
        "client_cpu_ms_per_claim": round(1000 * cpu / count, 2),
        "client_kib_per_claim": round(size / count / 1024, 1),
        "idle_cpu_share": round(idle, 3),
        "ping_ms_many_at_once": spread(answers),
        "ping_ms_alone": spread([(await pinged([held[0]]))[0] for _ in range(50)]),
        "counts": dict(backend.counted()),
        "pid": os.getpid(),
    }
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()
    while True:
        await asyncio.sleep(5)
        await pinged(held)


def holder(
    settings: KubernetesSettings, count: int, at_once: int = 32, *, idle_s: float = IDLE_S
) -> tuple[subprocess.Popen[bytes], dict[str, Any]]:
    """Such a process, and what it said once it held them all."""
    argv = [sys.executable, "-m", "tests.kubernetes.holding", settings.model_dump_json()]
    argv += [str(count), str(at_once), str(idle_s)]
    process = subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE)
    assert process.stdout is not None
    said = process.stdout.readline()
    if not said:
        raise RuntimeError(f"the holder ended with code {process.wait()}")
    return process, json.loads(said)


if __name__ == "__main__":
    made = KubernetesSettings.model_validate_json(sys.argv[1])
    asyncio.run(main(made, int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])))
