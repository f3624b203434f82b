"""CPU time of a run of the offline model, stage by stage, beside an older checkout of the project.

    python benchmarks/bench_grading.py [--baseline CHECKOUT] [--tasks 400] [--repeats 3] [--demo]

Each repeat makes a dataset with this checkout and with the baseline in turn, each in a process of
its own that runs every stage by itself (`workers = 1`, no servers, no code, no Prefect). CPU time
is user and system time of the process, since wall time on a shared machine says little; what
others do on the same cores still raises it. With `--demo` the whole `synth demo` runs as well, with
its servers, sandboxes and Prefect: then it is the time of the tree of processes.

One JSON line a stage, the whole, the judging (grading, calibration and curation) and one large
reply: `now` and `before` in CPU seconds, `ratio` of their medians, and for stages `ms_each`, the
CPU milliseconds for each of the tasks. The large reply has 400 lines over 400 records; only what
code finds of its statements is timed.
"""

import argparse
import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
JUDGING = ("grading", "calibration", "curation")
LINES = 400

Seconds = dict[str, float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--baseline", type=Path, help="folder of the older checkout")
    parser.add_argument("--tasks", type=int, default=400)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--demo", action="store_true", help="run `synth demo` as well")
    parser.add_argument("--alone", action="store_true", help="measure the checkout on the path")
    args = parser.parse_args()
    if args.alone:
        print(json.dumps(measured(args.tasks)))
        return
    checkouts = {"now": ROOT} | ({"before": args.baseline.resolve()} if args.baseline else {})
    taken: dict[str, list[Seconds]] = {which: [] for which in checkouts}
    for _ in range(args.repeats):
        for which, checkout in checkouts.items():
            seconds = of_checkout(checkout, args.tasks)
            demo = {"demo": of_demo(checkout, args.tasks)} if args.demo else {}
            taken[which].append(seconds | demo)
    tell(taken, args.tasks)


def tell(taken: dict[str, list[Seconds]], tasks: int) -> None:
    sys.path.insert(0, str(ROOT))
    from benchmarks.measured import show, spread

    for stage in taken["now"][0]:
        seconds = {
            which: [one[stage] for one in runs] for which, runs in taken.items() if stage in runs[0]
        }
        medians = {which: statistics.median(values) for which, values in seconds.items()}
        line: dict[str, Any] = {"stage": stage, "tasks": tasks}
        line |= {which: spread(values) for which, values in seconds.items()}
        if "before" in medians:
            line["ratio"] = round(medians["now"] / medians["before"], 3)
        if stage != "large_reply":
            line["ms_each"] = {which: round(1000 * m / tasks, 2) for which, m in medians.items()}
        show(line)


def of_checkout(checkout: Path, tasks: int) -> Seconds:
    """What a process finds that imports the project from there."""
    command = [sys.executable, __file__, "--alone", "--tasks", str(tasks)]
    done = subprocess.run(
        command, cwd=checkout, env=_environment(checkout), stdout=subprocess.PIPE, check=True
    )
    return json.loads(done.stdout)


def of_demo(checkout: Path, tasks: int) -> float:
    """CPU seconds of `synth demo` and of all the processes that it waits for."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "flows.cli", "demo", "--dataset", f"{folder}/demo"]
        command += ["--set", f"num_tasks={tasks}"]
        before = _cpu_s(resource.RUSAGE_CHILDREN)
        subprocess.run(
            command, cwd=checkout, env=_environment(checkout), stdout=sys.stderr, check=True
        )
        return _cpu_s(resource.RUSAGE_CHILDREN) - before


def _environment(checkout: Path) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(checkout)}


def measured(tasks: int) -> Seconds:
    """CPU seconds by stage, of the whole, of the judging and of the large reply."""
    with tempfile.TemporaryDirectory() as folder:
        seconds = asyncio.run(_stages(Path(folder) / "d", tasks))
    judging = sum(seconds[stage] for stage in JUDGING)
    whole = sum(seconds.values())
    return seconds | {"judging": judging, "whole": whole} | _large_reply()


async def _stages(folder: Path, tasks: int) -> Seconds:
    from flows.runtime.open_run import open_run
    from synth.pipeline.config import BUILT_IN, RunConfig
    from synth.pipeline.stages import STAGES

    config = RunConfig(
        name="bench", domains=(BUILT_IN,), servers=(), code=(), num_tasks=tasks, workers=1
    )
    seconds: Seconds = {}
    async with open_run(config, str(folder), command="benchmark") as run:
        for kind in STAGES:
            begun = _cpu_s()
            stage = kind(run)
            await run.run_stage(stage)
            seconds[stage.name] = _cpu_s() - begun
    return seconds


def _large_reply() -> Seconds:
    try:
        from synth.rubrics.statements.statements import statements_of
    except ImportError:  # a checkout from before statements were looked at one by one
        return {}
    records = [
        {
            "order_id": f"ORD-{1000 + i}",
            "customer": f"Ada Finch {i % 37}",
            "amount": 5.25 + 3 * i,
            "due": f"2026-{1 + i % 12:02d}-{1 + i % 28:02d}",
            "status": ("open", "shipped", "closed")[i % 3],
        }
        for i in range(LINES)
    ]
    lines = (
        f"- {r['order_id']}: {r['customer']}, {r['amount']:.2f}, due {r['due']}, {r['status']}"
        for r in records
    )
    result = json.dumps(records)
    call = {"name": "list_orders", "arguments": {}, "observation": result, "is_error": False}
    messages = [
        {"role": "system", "content": "You are a desk. Today is Thursday, 5 March 2026."},
        {"role": "user", "content": "Please list all my orders with their amounts."},
        {"role": "tool", "name": "list_orders", "content": result},
        {"role": "assistant", "content": "\n".join(("Here is what I have found for you.", *lines))},
    ]
    begun = _cpu_s()
    statements_of(messages, [call | {"state_diff": []}])
    return {"large_reply": _cpu_s() - begun}


def _cpu_s(who: int = resource.RUSAGE_SELF) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
