"""Trajectories a second against the number in flight, and how much of the time is ours.

    python benchmarks/bench_pipeline.py [--latency 0.05 2] [--in-flight 16 64 256] [--waves 10]
                                        [--workers 0]

The endpoint is `synth offline-llm` in a process of its own, which waits `--latency` seconds before
it answers. A case makes tasks with the offline model (not measured), then rolls out `--waves`
tasks for each place in flight against the endpoint: the whole stage, with journals and commits.
`max_in_flight` bounds the requests; an eighth more episodes are under way, so that a request is
ready whenever one is answered while another episode works on its tools.
The baseline of the same case is raw aiohttp, the same number in flight, sending the agents' first
requests again: what this endpoint gives on this machine to a client that does nothing else.

One JSON line a case:
- `trajectories_s`, `requests_s`: in the steady part, from 20% to 80% of the stage's wall time.
- `of_ideal`: requests_s over in flight / latency; `baseline_of_ideal` likewise.
- `idle`: share of the places at the endpoint that held no request, steady part.
- `cpu_s_per_trajectory`: of this process and its workers, their start included.
"""

import argparse
import asyncio
import json
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.bench_kills import endpoint
from benchmarks.measured import show
from flows.runtime.open_run import open_run
from records.store.dataset import Dataset
from synth.engine.run import Run
from synth.llm.settings.config import RoleConfig
from synth.pipeline.config import BUILT_IN, RunConfig
from synth.pipeline.stages import STAGES, RolloutStage

SPARE = 8
"""One episode more for so many requests in flight."""

CALLS = """
SELECT epoch(started_at) AS began, epoch(started_at) + latency_s AS ended
FROM llm_calls WHERE stage = 'rollouts' AND status = 'ok'"""


class Rates(NamedTuple):
    requests_s: float
    in_flight: float
    """Requests under way, on average."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--latency", type=float, nargs="+", default=[0.05, 2.0], help="seconds")
    parser.add_argument("--in-flight", type=int, nargs="+", default=[16, 64, 256])
    parser.add_argument("--waves", type=int, default=10, help="tasks for each place in flight")
    parser.add_argument("--workers", type=int, default=0, help="as in the config of a run")
    args = parser.parse_args()
    for latency_s in args.latency:
        for in_flight in args.in_flight:
            with tempfile.TemporaryDirectory() as folder:
                show(measured(Path(folder), latency_s, in_flight, args))


def measured(
    folder: Path, latency_s: float, in_flight: int, args: argparse.Namespace
) -> dict[str, Any]:
    count = in_flight * args.waves
    config = RunConfig(
        name="bench",
        domains=(BUILT_IN,),
        servers=(),
        code=(),
        num_tasks=count,
        concurrency=in_flight + in_flight // SPARE,
        shard_size=max(8, min(100, in_flight // 2)),
        workers=args.workers,
    )
    asyncio.run(stages(config, folder / "d", [kind for kind in STAGES if comes_before(kind)]))
    with endpoint(folder / "log", f"latency_s={latency_s}") as url:
        role = RoleConfig(base_url=url, max_in_flight=in_flight)
        remote = config.model_copy(update={"roles": dict.fromkeys(config.roles, role)})
        before = cpu_s()
        begun = time.time()
        asyncio.run(stages(remote, folder / "d", [RolloutStage]))
        ended, cpu = time.time(), cpu_s() - before
        rates, episodes_s, made = steady(folder / "d", begun, ended)
        raw = asyncio.run(baseline(url, first_requests(folder / "d"), in_flight, latency_s))
    ideal = in_flight / latency_s
    return {
        "latency_s": latency_s,
        "in_flight": in_flight,
        "trajectories": made,
        "wall_s": round(ended - begun, 1),
        "trajectories_s": round(episodes_s, 2),
        "requests_s": round(rates.requests_s, 1),
        "of_ideal": round(rates.requests_s / ideal, 3),
        "baseline_requests_s": round(raw, 1),
        "baseline_of_ideal": round(raw / ideal, 3),
        "idle": round(1 - rates.in_flight / in_flight, 3),
        "cpu_s_per_trajectory": round(cpu / made, 4),
    }


def comes_before(kind: Any) -> bool:
    names = [stage.name for stage in STAGES]
    return names.index(kind.name) < names.index(RolloutStage.name)


async def stages(config: RunConfig, folder: Path, kinds: list[Any]) -> None:
    async with open_run(config, str(folder), command="benchmark") as run:
        for kind in kinds:
            await every_shard(run, kind(run))


async def every_shard(run: Run[RunConfig], stage: Any) -> None:
    """As the flows do, without Prefect."""
    plan = run.plan(stage)

    async def one(indexes: list[int]) -> None:
        async with run.turn(stage, plan, indexes):
            async for _ in run.run_shards(stage, plan, indexes):
                pass

    await asyncio.gather(*map(one, run.requests(plan)))


def steady(folder: Path, begun: float, ended: float) -> tuple[Rates, float, int]:
    """Rates between 20% and 80% of the time from the first to the last request."""
    with Dataset.open(folder).connect() as db:
        calls = [(a, b) for a, b in db.execute(CALLS).fetchall() if begun <= a <= ended]
        [(made,)] = db.execute("SELECT count(*) FROM trajectories").fetchall()
    first, last = min(a for a, _ in calls), max(b for _, b in calls)
    low, high = first + 0.2 * (last - first), first + 0.8 * (last - first)
    answered = sum(low <= b < high for _, b in calls)
    under_way = sum(max(0.0, min(b, high) - max(a, low)) for a, b in calls)
    rates = Rates(answered / (high - low), under_way / (high - low))
    return rates, rates.requests_s * made / len(calls), made


def first_requests(folder: Path) -> list[bytes]:
    """What the agents of some trajectories were asked first."""
    rows = next(Dataset.open(folder).in_commits("trajectories", ("messages", "tools")))
    return [
        json.dumps({"model": "offline-model", "messages": row["messages"][:2]} | tools).encode()
        for row in rows
        for tools in [{"tools": row["tools"]} if row["tools"] else {}]
    ]


async def baseline(url: str, bodies: list[bytes], in_flight: int, latency_s: float) -> float:
    """Requests/s of a client that only sends, over three rounds after the first."""
    connector = aiohttp.TCPConnector(limit=in_flight)
    headers = {"Content-Type": "application/json"}
    until = time.monotonic() + max(4 * latency_s, 3.0)
    from_ = time.monotonic() + max(latency_s, 0.5)
    done = 0

    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:

        async def one(place: int) -> None:
            nonlocal done
            while time.monotonic() < until:
                body = bodies[place % len(bodies)]
                async with session.post(f"{url}/chat/completions", data=body) as response:
                    await response.read()
                    response.raise_for_status()
                done += from_ <= time.monotonic() < until

        await asyncio.gather(*map(one, range(in_flight)))
    return done / (until - from_)


def cpu_s() -> float:
    """Of this process and of the workers that have ended."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


if __name__ == "__main__":
    main()
