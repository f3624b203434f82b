"""Run what is missing of the ablations, then write the report.

    python -m benchmarks.ablations [--seeds 1] [--only optimisers growth] [--scale 1.0] [--jobs 2]
                                   [--out data/ablations] [--report FILE.md]

Stopped at any time and started again, it goes on. `--scale` shortens runs, to try things.
"""

import argparse
import json
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType

import torch

from benchmarks.ablations import growth, optimisers, rephrasing, sparsity
from benchmarks.ablations.cells import Cell, Done, Result, Results
from benchmarks.ablations.learning import Plan, shape
from benchmarks.ablations.prose import prose
from benchmarks.ablations.report import write_report
from records.processes import end_with_parent

ABLATIONS: dict[str, ModuleType] = {
    "optimisers": optimisers,
    "growth": growth,
    "sparsity": sparsity,
    "rephrasing": rephrasing,
}
TOLD = ("loss", "unseen", "practised")
"""Of a result, while it runs."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1, help="how many, from 0")
    parser.add_argument("--only", nargs="+", choices=ABLATIONS, default=list(ABLATIONS))
    parser.add_argument("--scale", type=float, default=1.0, help="of the steps of a run")
    parser.add_argument("--jobs", type=int, default=2, help="processes of one thread each")
    parser.add_argument("--out", type=Path, default=Path("data/ablations"))
    parser.add_argument("--report", type=Path, help="default: OUT/ablations.md")
    options = parser.parse_args()
    results = Results(options.out / "cells")
    begun = time.perf_counter()
    context = get_context("spawn")  # torch's threads do not survive a fork
    with ProcessPoolExecutor(options.jobs, mp_context=context, initializer=_begin) as pool:
        vocab_size, fingerprint = pool.submit(_prepared, options.out / "prose").result()
        start = Plan(shape=shape(vocab_size), peak_lr=1.0, steps=1, corpus=fingerprint)
        plans = {
            (name, seed): start.at(seed=seed)
            for seed in range(options.seeds)
            for name in options.only
        }
        done = _finish(plans, options.scale, results, pool, options.out / "prose")
    path = options.report or options.out / "ablations.md"
    write_report(
        path,
        {n: {s: done[n, s] for s in range(options.seeds)} for n in options.only},
        ABLATIONS,
        results,
        command=" ".join(["python -m benchmarks.ablations", *sys.argv[1:]]),
        jobs=options.jobs,
        wall_s=time.perf_counter() - begun,
    )
    print(path)


Key = tuple[str, int]
"""Ablation and seed."""


def _finish(
    plans: Mapping[Key, Plan],
    scale: float,
    results: Results,
    pool: ProcessPoolExecutor,
    folder: Path,
) -> dict[Key, Done]:
    """Run what is wanted until nothing more is: answers make new user goals."""
    while True:
        states = {key: _state(key[0], plan, scale, results) for key, plan in plans.items()}
        missing = [cell for _, cells in states.values() for cell in cells]
        if not missing:
            return {key: done for key, (done, _) in states.items()}
        running = {pool.submit(_run, cell, folder): cell for cell in missing}
        for future in as_completed(running):
            cell = running[future]
            result, seconds = future.result()
            results.put(cell, result, seconds)
            told = {name: result[name] for name in TOLD if result.get(name) is not None}
            where = f"{cell.ablation} seed {cell.seed} {cell.name}"
            print(f"{where}: {json.dumps(told)} {seconds:.0f} s", flush=True)


def _state(name: str, plan: Plan, scale: float, results: Results) -> tuple[Done, list[Cell]]:
    """What is done, and what is wanted besides."""
    done: Done = {}
    while True:
        cells = ABLATIONS[name].wanted(plan, scale, done)
        known = {c.name: (c, r) for c in cells if (r := results.get(c)) is not None}
        if len(known) == len(done):
            return known, [cell for cell in cells if cell.name not in known]
        done = known


def _begin() -> None:
    torch.set_num_threads(1)
    end_with_parent()


def _prepared(folder: Path) -> tuple[int, str]:
    made = prose(folder)
    return made.vocab_size, made.train.fingerprint


def _run(cell: Cell, folder: Path) -> tuple[Result, float]:
    begun = time.perf_counter()
    result = ABLATIONS[cell.ablation].run(cell, prose(folder))
    return result, time.perf_counter() - begun
