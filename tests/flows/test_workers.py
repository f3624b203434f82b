"""Shards made in worker processes: the same bytes, one budget, one limit, and nothing lost."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from flows.runtime.open_run import open_run
from offline_llm.jobs import answer_of
from offline_llm.server.request import parse_chat
from offline_llm.server.response import completion
from offline_llm.settings.settings import OfflineSettings
from records.errors import BudgetError, TransientError
from records.processes import ProcessId, is_alive
from records.store.dataset import Dataset
from synth.engine.job_config import OfflineConfig
from synth.engine.plans import StagePlan
from synth.engine.stages import Stage
from synth.llm.settings.config import BudgetConfig, ModelConfig, RoleConfig
from synth.pipeline.config import RunConfig
from synth.pipeline.stages import STAGES
from tests.flows.pipeline_work import SMALL, content_of
from tests.synth.llm.server import Body, serve

CONFIG = SMALL.model_copy(update={"num_tasks": 8, "shard_size": 2, "concurrency": 4})


def with_workers(workers: int, **changes: object) -> RunConfig:
    return CONFIG.model_copy(update={"workers": workers, **changes})


async def pipeline(
    folder: Path, config: RunConfig, on_progress: Callable[[str, int, int], None] | None = None
) -> int:
    """Every stage, its shards side by side; how often a shard was made again."""
    again = 0
    async with open_run(config, str(folder), command="test") as run:
        if on_progress is not None:
            run.on_progress = on_progress
        for make_stage in STAGES:
            stage = make_stage(run)
            plan = run.plan(stage)

            async def one(index: int, stage: Stage = stage, plan: StagePlan = plan) -> None:
                nonlocal again
                async with run.turn(stage, plan, [index]):
                    while True:
                        try:
                            [_] = [made async for made in run.run_shards(stage, plan, [index])]
                            return
                        except TransientError:
                            again += 1

            outcomes = await asyncio.gather(*map(one, plan.open_shards), return_exceptions=True)
            if failed := [o for o in outcomes if isinstance(o, BaseException)]:
                raise failed[0]
    return again


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "d"
    asyncio.run(pipeline(folder, with_workers(1)))
    return folder


@pytest.fixture(scope="module")
def expected(whole: Path) -> dict[str, bytes]:
    return content_of(whole)


def children() -> list[int]:
    """Process ids of this process's workers."""
    listed = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return [
        int(p)
        for p in listed
        if b"synth.engine.processes.worker" in Path(f"/proc/{p}/cmdline").read_bytes()
    ]


def spent(folder: Path) -> int:
    query = """select coalesce(sum(prompt_tokens + completion_tokens), 0)
        from llm_calls where not cache_hit and stage != 'probe'"""
    [(tokens,)] = Dataset.open(folder).connect().execute(query).fetchall()
    return int(tokens)


@pytest.mark.slow
@pytest.mark.parametrize(("in_flight", "shard_size", "workers"), [(4, 7, 2), (64, 50, 1)])
def test_in_flight_shard_size_and_workers_change_no_byte(
    in_flight: int, shard_size: int, workers: int, tmp_path: Path, expected: dict[str, bytes]
) -> None:
    jitter = OfflineConfig(jitter_s=0.02)
    config = with_workers(workers, concurrency=in_flight, shard_size=shard_size, offline=jitter)
    asyncio.run(pipeline(tmp_path / "d", config))
    assert content_of(tmp_path / "d") == expected


@pytest.mark.slow
def test_a_killed_worker_is_replaced_and_its_shards_made_again(
    tmp_path: Path, expected: dict[str, bytes]
) -> None:
    killed: list[int] = []
    finished: dict[str, int] = {}

    def on_progress(stage: str, n: int, total: int) -> None:
        finished[stage] = finished.get(stage, 0) + n
        if stage == "rollouts" and not killed:
            killed.append(children()[0])
            os.kill(killed[0], signal.SIGKILL)

    again = asyncio.run(pipeline(tmp_path / "d", with_workers(2), on_progress))
    assert again >= 1
    assert content_of(tmp_path / "d") == expected
    assert finished["rollouts"] == finished["grading"]  # what was lost is not shown as done
    assert not children()


@pytest.mark.slow
def test_shards_that_are_opened_together_share_their_lane_s_process(
    tmp_path: Path, expected: dict[str, bytes]
) -> None:
    seen: set[int] = set()
    config = with_workers(2, concurrency=64, shard_size=1)
    asyncio.run(pipeline(tmp_path / "d", config, lambda *_: seen.update(children())))
    assert len(seen) == 2
    assert not children()
    assert content_of(tmp_path / "d") == expected


@pytest.mark.slow
def test_the_budget_is_one_for_all_workers(
    tmp_path: Path, whole: Path, expected: dict[str, bytes]
) -> None:
    everything = spent(whole)
    limited = with_workers(2, budget=BudgetConfig(tokens=everything // 2))
    with pytest.raises(BudgetError, match="budget of the run"):
        asyncio.run(pipeline(tmp_path / "d", limited))
    assert 0 < spent(tmp_path / "d") <= everything // 2
    asyncio.run(pipeline(tmp_path / "d", with_workers(2)))
    assert content_of(tmp_path / "d") == expected
    assert spent(tmp_path / "d") == everything


@pytest.mark.slow
def test_the_limit_of_an_endpoint_holds_for_all_workers(tmp_path: Path) -> None:
    settings = OfflineSettings()

    def script(_: int, body: Body) -> Body:
        request = parse_chat(body)
        return json.loads(json.dumps(completion(request, answer_of(request, settings=settings))))

    async def run() -> tuple[int, int]:
        async with serve(script, latency_s=lambda _: 0.02) as server:
            role = RoleConfig(base_url=server.url, max_in_flight=3, models=(ModelConfig(name="m"),))
            roles = dict.fromkeys(CONFIG.roles, role)
            config = with_workers(2, roles=roles, concurrency=12, shard_size=1)
            await pipeline(tmp_path / "d", config)
            return server.most_in_flight, server.in_flight

    assert asyncio.run(run()) == (3, 0)


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_workers_end_with_their_run(how: signal.Signals, tmp_path: Path) -> None:
    code = """if True:
        import asyncio, sys
        from pathlib import Path
        from tests.flows.test_workers import pipeline, with_workers
        config = with_workers(2, num_tasks=40)
        def say(stage, n, total):
            print(stage, flush=True)
        asyncio.run(pipeline(Path(sys.argv[1]), config, say))
    """
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "d")],
        stdout=subprocess.PIPE,
        text=True,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip() == "rollouts":
            break
    listed = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    workers = [ProcessId.of(int(pid)) for pid in listed]
    assert len(workers) >= 2
    process.send_signal(how)
    process.stdout.read()
    process.wait()
    process.stdout.close()
    assert (tmp_path / "d" / "lease.json").exists() == (how == signal.SIGKILL)
    deadline = time.monotonic() + 10
    while any(map(is_alive, workers)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(map(is_alive, workers))
