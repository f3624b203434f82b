"""Exports of 100,000 trajectories: rows a second and peak memory, by format and type of file.

    python benchmarks/bench_exports.py DATASET [--rows 10000 100000] [--formats hf trl]

The rows are those of a dataset that a run made, over and over under other ids, with their newest
decisions, verdicts and calls; agents, tools and tasks are as they are. Each export is a process of
its own, so that its peak of memory is its own. Prints one JSON line per export; memory is flat
where the peaks of few and of many rows are alike.
"""

import argparse
import multiprocessing
import resource
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.measured import show
from records.digest import digest
from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.exports.export import export_dataset
from synth.exports.formats.registry import FORMATS

RUN = "multiplied"
SHARD = 4_000
"""Trajectories of one commit."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--formats", nargs="+", default=[n for n in FORMATS if n != "preferences"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for number in options.rows:
            multiplied = Path(folder) / str(number)
            alone(multiply, options.dataset, multiplied, number)
            for name in options.formats:
                for file_type in FORMATS[name].file_types:
                    out = Path(folder) / f"{number}-{name}-{file_type}"
                    show(alone(measured, multiplied, out, name, file_type))


def alone(work: Any, *arguments: Any) -> Any:
    """The work in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, arguments)


def multiply(source: Path, target: Path, number: int) -> None:
    """A dataset with so many accepted trajectories of the training split."""
    old, new = Dataset.open(source), Dataset.create_or_open(target)
    shared = ("domains", "tools", "agents", "personas", "tasks", "runs", "calibration")
    new.commit(run_id=RUN, stage="tasks", shard=0, tables={t: old.rows(t) for t in shared})
    with old.connect() as db:
        found = db.execute("SELECT trajectory_id FROM sft WHERE split = 'train'").fetchall()
    chosen = {trajectory_id for (trajectory_id,) in found}
    about = {
        table: _by_trajectory(old.rows(table), chosen)
        for table in ("trajectories", "curation", "verdicts", "tool_calls")
    }
    ids = sorted(chosen)
    for shard, start in enumerate(range(0, number, SHARD)):
        tables: dict[str, list[Row]] = {table: [] for table in about}
        for at in range(start, min(start + SHARD, number)):
            own = ids[at % len(ids)]
            copied = {"trajectory_id": digest(own, at)}
            for table, rows in about.items():
                tables[table] += [row | copied for row in rows[own]]
        new.commit(run_id=RUN, stage="rollouts", shard=shard, tables=tables)


def _by_trajectory(rows: Sequence[Row], chosen: set[str]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row["trajectory_id"] in chosen:
            found[row["trajectory_id"]].append(row)
    return found


def measured(dataset: Path, out: Path, name: str, file_type: str) -> Row:
    cpu, started = time.process_time(), time.perf_counter()
    made = export_dataset(Dataset.open(dataset), out, format=name, file_type=file_type)
    wall = time.perf_counter() - started
    rows = sum(made.rows.values()) + sum(sum(own.values()) for own in made.more_rows.values())
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    return {
        "name": f"{name}, {file_type}",
        "rows": rows,
        "value": round(rows / wall),
        "unit": "rows/s",
        "wall_s": round(wall, 1),
        "cpu_s": round(time.process_time() - cpu, 1),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "written_mib": size // 2**20,
    }


if __name__ == "__main__":
    main()
