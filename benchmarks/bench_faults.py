"""Faults that a run survives: each is made to happen, and the run must come to the same rows.

    python benchmarks/bench_faults.py [--tasks 12] [--only TEXT]

The endpoint is `synth offline-llm` in a process of its own; what it counts is what was asked. Each
line is one run from an empty folder, started again after every stop, and compared byte for byte
with the content tables of an undisturbed run. Exit code 1 if one differs or a budget was exceeded.
For kills see `bench_kills.py`, for the sandboxes' own faults `synth sandbox faults`.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.bench_kills import endpoint
from benchmarks.request_log import read_log
from records.errors import BudgetError, SynthError
from synth.llm.settings.config import BudgetConfig, LimitConfig, RoleConfig, TokenUsage
from synth.pipeline.config import RunConfig
from tests.flows.pipeline_work import content_of, run_pipeline

ROLES = ("generator", "agent", "user", "judge")
QUICK = {"backoff_s": 0.01, "retries": 12}
PRICES = {"usd_per_million_prompt": 0.6, "usd_per_million_completion": 2.5}


class Fault(NamedTuple):
    name: str
    settings: tuple[str, ...] = ()
    """Of the endpoint."""
    role: dict[str, float] = {}  # noqa: RUF012
    budgets: tuple[BudgetConfig, ...] = ()
    """One after the other, each met, before the run goes on without."""
    around: Callable[[Path], Iterator[None]] | None = None


def small_disk(folder: Path) -> Iterator[None]:
    """The dataset on a disk that is too small, and grows after the first stop."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(folder)]
    subprocess.run(mount, check=True)
    yield
    subprocess.run(["umount", str(folder)], check=True)


FAULTS = (
    Fault("429 storm: 4 of 10", ("misbehave.rate_limit=0.4",)),
    Fault("500: 3 of 10", ("misbehave.server_error=0.3",)),
    Fault("truncated JSON: 2 of 10", ("misbehave.truncated=0.2",)),
    Fault(
        "time-outs: hangs longer than we wait, 5 of 100",
        ("misbehave.hang=0.05", "misbehave.hang_s=20"),
        {"timeout_s": 2.0},
    ),
    Fault("504 after a hang: 5 of 100", ("misbehave.hang=0.05", "misbehave.hang_s=0.5")),
    Fault("budget of tokens, met twice", budgets=(BudgetConfig(tokens=60_000),) * 2),
    Fault("budget of USD, met once", budgets=(BudgetConfig(usd=0.05),)),
    Fault(
        "budget of one stage, met once",
        budgets=(BudgetConfig(stages={"rollouts": LimitConfig(tokens=50_000)}),),
    ),
    Fault("disk full (tmpfs), then grown", around=small_disk),
)


def config_of(fault: Fault, url: str, num_tasks: int) -> RunConfig:
    role = RoleConfig.model_validate({"base_url": url} | QUICK | PRICES | fault.role)
    return RunConfig(
        name="faults",
        roles=dict.fromkeys(ROLES, role),
        domains=("clinic_desk", "web_shop"),
        servers=(),
        code=(),
        num_tasks=num_tasks,
        shard_size=6,
        max_failed=1.0,
    )


def survive(fault: Fault, folder: Path, num_tasks: int) -> tuple[int, int, str]:
    """(stops, requests more or fewer than the undisturbed run's, problem)."""
    whole, hurt = folder / "whole", folder / "hurt"
    log = folder / "server.jsonl"
    with endpoint(log) as url:
        run_pipeline(whole, config_of(fault, url, num_tasks))
    asked, stops, problem = read_log(log).requests, 0, ""
    log.unlink()
    with endpoint(log, *fault.settings) as url, hurting(fault, hurt):
        config = config_of(fault, url, num_tasks)
        for budget in fault.budgets:
            try:
                run_pipeline(hurt, config.model_copy(update={"budget": budget}))
            except BudgetError:
                stops += 1
            logged = read_log(log)
            usd = config.roles["agent"].cost_usd(
                TokenUsage(logged.prompt_tokens, logged.completion_tokens)
            )
            if (budget.tokens and logged.tokens > budget.tokens) or (
                budget.usd and usd > budget.usd
            ):
                problem = (
                    f"the server counted {logged.tokens} tokens, {usd:.4f} USD: over the budget"
                )
        while True:
            try:
                run_pipeline(hurt, config)
                break
            except (SynthError, OSError) as error:
                stops += 1
                print(f"(stopped: {str(error)[:100]})")
                if hurt.is_mount():
                    subprocess.run(["mount", "-o", "remount,size=200m", str(hurt)], check=True)
        differ = [
            name for name, data in content_of(whole).items() if content_of(hurt)[name] != data
        ]
    if fault.budgets and not stops:
        problem = "the budget was never met"
    if differ:
        problem = f"tables differ: {', '.join(differ)}"
    return stops, read_log(log).requests - asked, problem


@contextmanager
def hurting(fault: Fault, folder: Path) -> Iterator[None]:
    if fault.around is None:
        yield
    else:
        yield from fault.around(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--tasks", type=int, default=12)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    lost = 0
    lines = ["| fault | stops | requests more | seconds | survived |", "|---|---|---|---|---|"]
    for fault in FAULTS:
        if args.only not in fault.name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            begun = time.monotonic()
            stops, more, problem = survive(fault, Path(folder), args.tasks)
            seconds = time.monotonic() - begun
        lost += bool(problem)
        lines.append(f"| {fault.name} | {stops} | {more} | {seconds:.0f} | {problem or 'yes'} |")
        print(lines[-1], flush=True)
    print("\n".join(lines))
    raise SystemExit(lost > 0)


if __name__ == "__main__":
    main()
