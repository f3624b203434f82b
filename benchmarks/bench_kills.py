"""kill -9 at random moments of a run: the same bytes in the end, and almost nothing paid twice.

    python benchmarks/bench_kills.py [--tasks 500] [--kills 20] [--seed 1] [--prefect]
                                     [--worlds domains | servers | code | all]
                                     [--victim run | worker] [--latency-ms 0] [--out FOLDER]

The endpoint is `synth offline-llm` in a process of its own, with a log of its own: what it counts
is what was asked. One run goes through undisturbed. The same run, in another folder, is killed with
its whole process group each time the server's log has grown to a number of requests that the seed
drew (at once or up to a second later, so that it also dies between requests), and started again.
Then every content table must equal the undisturbed run's, byte for byte, and the server must have
seen at most as many requests more as could be in flight at the kills. What a probe asks is counted
apart: each start asks again. Exit code 1 if any of this does not hold.

`--prefect` kills `synth run`, flows and all, instead of the plain stages. `--victim worker` kills
one of the run's worker processes each time, and the run goes on by itself.
"""

import argparse
import asyncio
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.request_log import read_log
from records.errors import TransientError
from records.reading.canonical import CONTENT, canonical_bytes
from records.store.dataset import Dataset
from synth.llm.probing.probe import probe
from synth.llm.settings.config import RoleConfig
from synth.pipeline.config import BUILT_IN

ROOT = Path(__file__).resolve().parent.parent
IN_FLIGHT = 16
WORLDS: dict[str, dict[str, Any]] = {
    "domains": {"domains": (BUILT_IN,), "servers": (), "code": ()},
    "servers": {"domains": ("clinic_desk",), "code": ()},
    "code": {"domains": ("clinic_desk",), "servers": ()},
    "all": {"domains": (BUILT_IN,)},
}


class Kill(NamedTuple):
    wanted: int
    """Requests that the server had to have seen."""
    seen: int
    """Requests that it had seen."""
    unanswered: int
    """Of them, those that it had not answered."""
    where: str
    """The newest stage that had a plan."""


class Outcome(NamedTuple):
    requests: int
    probes: int
    tokens: int
    starts: int
    seconds: float


class Watch:
    """Counts the requests in a growing log, probes left out."""

    def __init__(self, log: Path, probes: set[str]) -> None:
        self._file = log.open()
        self._probes = probes
        self._seen, self._rest = 0, ""

    def requests(self) -> int:
        *lines, self._rest = (self._rest + self._file.read()).split("\n")
        entries = map(json.loads, lines)
        asked = [e for e in entries if e["event"] == "asked" and e["digest"] not in self._probes]
        self._seen += len(asked)
        return self._seen


@contextmanager
def endpoint(log: Path, *settings: str) -> Iterator[str]:
    """`synth offline-llm` in a process of its own; its base URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "flows.cli.main", "offline-llm", "--port", str(port)]
    command += ["--log", str(log), *(word for one in settings for word in ("--set", one))]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}/v1"
    try:
        for _ in range(1500):
            try:
                urllib.request.urlopen(f"{url}/models", timeout=5).close()
                break
            except OSError:
                time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait()


def probe_requests(url: str, log: Path) -> set[str]:
    """Digests of what a probe asks: asked here once, alone, and the log emptied again."""
    role = RoleConfig(base_url=url)
    asyncio.run(probe({"agent": role}, calls_tools=["agent"], invocation_id="kills"))
    digests = set(read_log(log).asked)
    log.write_text("")
    return digests


def start(config: Path, folder: Path, *, prefect: bool) -> subprocess.Popen[bytes]:
    """The run in a process group of its own."""
    environment = os.environ | {"SYNTH_PREFECT_HOME": str(folder.parent / "prefect")}
    environment = {k: v for k, v in environment.items() if k != "PREFECT_API_URL"}
    if prefect:
        command = ["-m", "flows.cli.main", "run", str(config), "--dataset", str(folder)]
    else:
        command = [__file__, "--run", str(config), str(folder)]
    output = (folder.parent / "run.log").open("ab")
    return subprocess.Popen(
        [sys.executable, *command],
        cwd=ROOT,
        env=environment,
        stderr=output,
        stdout=output,
        start_new_session=True,
    )


def work(config: Path, folder: Path) -> None:
    """Every stage without Prefect, with as many shards at once as the flow has."""
    from flows.runtime.open_run import open_run
    from synth.pipeline.config_files import load_config
    from synth.pipeline.stages import STAGES

    async def run() -> None:
        async with open_run(load_config(config), str(folder), command="bench kills") as opened:
            for make_stage in STAGES:
                stage = make_stage(opened)
                plan = opened.plan(stage)

                async def one(index: int, stage: Any = stage, plan: Any = plan) -> None:
                    async with opened.turn(stage, plan, [index]):
                        for retries_left in (2, 1, 0):  # as the flow does
                            try:
                                async for _ in opened.run_shards(stage, plan, [index]):
                                    pass
                                break
                            except TransientError:
                                if not retries_left:
                                    raise

                await asyncio.gather(*map(one, plan.open_shards))

    asyncio.run(run())


def finish(process: subprocess.Popen[bytes], folder: Path) -> None:
    if process.wait() != 0:
        log = (folder.parent / "run.log").read_text()
        raise SystemExit(f"the run ended with {process.returncode}:\n{log[-3000:]}")


def write_config(path: Path, url: str, args: argparse.Namespace) -> Path:
    """The run as a TOML file, for either way of starting it."""
    values = {"num_tasks": args.tasks, "concurrency": IN_FLIGHT, "shard_size": args.shard_size}
    values |= {"name": "kills", "max_failed": 1.0} | WORLDS[args.worlds]
    lines = [f"{name} = {json.dumps(value)}" for name, value in values.items()]
    for role in ("generator", "agent", "user", "judge"):
        lines += [f"[roles.{role}]", f"base_url = {json.dumps(url)}"]
    path.write_text("\n".join(lines) + "\n")
    return path


def undisturbed(folder: Path, args: argparse.Namespace) -> tuple[dict[str, int], Outcome]:
    """The run that nobody kills, and how often each request was asked."""
    log = folder.parent / "server.jsonl"
    with endpoint(log, f"latency_s={args.latency_ms / 1000}") as url:
        probes = probe_requests(url, log)
        config = write_config(folder.parent / "run.toml", url, args)
        begun = time.monotonic()
        finish(start(config, folder, prefect=args.prefect), folder)
        logged = read_log(log)
    asked = {d: n for d, n in logged.asked.items() if d not in probes}
    num_probes = logged.requests - sum(asked.values())
    seconds = time.monotonic() - begun
    return asked, Outcome(sum(asked.values()), num_probes, logged.tokens, 1, seconds)


def killed(
    folder: Path, total: int, args: argparse.Namespace
) -> tuple[dict[str, int], Outcome, list[Kill]]:
    """The same run, killed `args.kills` times on its way through `total` requests."""
    rng = random.Random(args.seed)
    moments = sorted(rng.sample(range(1, total), args.kills))
    delays = [rng.choice((0.0, rng.random())) for _ in moments]
    print(f"seed {args.seed}: kills at requests {moments}", flush=True)
    log = folder.parent / "server.jsonl"
    kills: list[Kill] = []
    with endpoint(log, f"latency_s={args.latency_ms / 1000}") as url:
        probes = probe_requests(url, log)
        config = write_config(folder.parent / "run.toml", url, args)
        watch = Watch(log, probes)
        begun = time.monotonic()
        process, starts = start(config, folder, prefect=args.prefect), 1
        for moment, delay in zip(moments, delays, strict=True):
            moment = max(moment, watch.requests() + 1)  # every start gets somewhere
            while process.poll() is None and watch.requests() < moment:
                time.sleep(0.01)
            time.sleep(delay)
            if process.poll() is not None:
                break  # it came through before the moment
            if not kill(process, args.victim):
                continue
            logged = read_log(log)
            plans = sorted(folder.glob("plans/*/*.json"), key=lambda p: p.stat().st_mtime)
            where = plans[-1].stem if plans else "start"
            kills.append(Kill(moment, watch.requests(), logged.open_requests, where))
            print(f"killed {len(kills)}: {kills[-1]}", flush=True)
            if args.victim == "run":
                time.sleep(0.5)  # what the server still answers to nobody is logged
                process, starts = start(config, folder, prefect=args.prefect), starts + 1
        finish(process, folder)
        logged = read_log(log)
    asked = {d: n for d, n in logged.asked.items() if d not in probes}
    num_probes = logged.requests - sum(asked.values())
    seconds = time.monotonic() - begun
    spent = Outcome(sum(asked.values()), num_probes, logged.tokens, starts, seconds)
    return asked, spent, kills


def kill(process: subprocess.Popen[bytes], victim: str) -> bool:
    """Kill the run with all its processes, or its first worker; False where it has none now."""
    if victim == "run":
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return True
    tasks = Path(f"/proc/{process.pid}/task").glob("*/children")
    children = [int(pid) for path in tasks for pid in path.read_text().split()]
    workers = [pid for pid in children if b"synth.engine.processes.worker" in command_of(pid)]
    if workers:
        os.kill(workers[0], signal.SIGKILL)
    return bool(workers)


def command_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def compared(whole: Path, other: Path) -> list[str]:
    a, b = Dataset.open(whole), Dataset.open(other)
    return [table for table in CONTENT if canonical_bytes(a, table) != canonical_bytes(b, table)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--tasks", type=int, default=500)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--shard-size", type=int, default=30)
    parser.add_argument("--latency-ms", type=int, default=0)
    parser.add_argument("--prefect", action="store_true")
    parser.add_argument("--victim", choices=("run", "worker"), default="run")
    parser.add_argument("--worlds", choices=WORLDS, default="domains")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--run", nargs=2, type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.run:
        return work(*args.run)
    out = args.out or Path(tempfile.mkdtemp(prefix="bench-kills-"))
    shutil.rmtree(out, ignore_errors=True)
    (out / "whole").mkdir(parents=True)
    (out / "killed").mkdir()
    base, first = undisturbed(out / "whole" / "d", args)
    print(f"undisturbed: {first}", flush=True)
    again, second, kills = killed(out / "killed" / "d", first.requests, args)
    different = compared(out / "whole" / "d", out / "killed" / "d")
    twice = sum(max(0, n - base.get(digest, 0)) for digest, n in again.items())
    strange = sum(digest not in base for digest in again)
    allowed = IN_FLIGHT * len(kills)
    trajectories = len(Dataset.open(out / "whole" / "d").ids("trajectories"))
    around = "with" if args.prefect else "without"
    print(f"worlds {args.worlds}, {around} Prefect, seed {args.seed}, killed: {args.victim}")
    print("| trajectories | kills | requests | with kills | more | never asked before | at most | "
          "tables that differ |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|")
    print(f"| {trajectories} | {len(kills)} | {first.requests} | {second.requests} | {twice} | "
          f"{strange} | {allowed} | {', '.join(different) or 'none'} |")  # fmt: skip
    print(f"seconds: {first.seconds:.0f} undisturbed, {second.seconds:.0f} with kills; "
          f"probes {first.probes} and {second.probes}")  # fmt: skip
    raise SystemExit(bool(different) or twice > allowed)


if __name__ == "__main__":
    main()
