"""Time and memory of curation over many trajectories, by what it is told to do.

    python -m benchmarks.bench_curation DATASET [--trajectories 20000]

The rows of the dataset are multiplied, with a quarter of the words that users and agents say
replaced, since all would be duplicates otherwise, and curated by the verdicts that are there. Each
case has a process of its own, for its own peak of memory. Prints one JSON line per case.
"""

import argparse
import asyncio
import multiprocessing
import random
import resource
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.bench_decontamination import TASKS
from benchmarks.measured import show
from flows.runtime.open_run import open_run
from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.curation.stages import CurationStage
from synth.episode.sessions import is_episode
from synth.judging.config import GradeConfig


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--trajectories", type=int, default=20_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "many"
        multiplied(Dataset.open(options.dataset), made, options.trajectories)
        for name, settings in CASES.items():
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                show({"name": "curation", "case": name} | pool.apply(measured, (made, settings)))


def measured(folder: Path, settings: Row) -> Row:
    cpu, started = time.process_time(), time.perf_counter()
    rows = asyncio.run(curated(folder, settings))
    wall = time.perf_counter() - started
    return {
        "trajectories": sum(rows.values()),
        "reasons": dict(rows.most_common()),
        "wall_s": round(wall, 1),
        "cpu_s": round(time.process_time() - cpu, 1),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


CASES: dict[str, Row] = {
    "defaults": {},
    "near-duplicates": {"near": 0.8},
    "quotas": {"quotas": {"domain": {"*": 0.1}, "executed_by": {"state_machine": 0.6}}},
    "decontamination": {"decontamination": {"files": [str(TASKS)]}},
}


def multiplied(source: Dataset, folder: Path, wanted: int) -> None:
    """`wanted` episodes of one conversation each: the source's with ids of their own, and with
    other words in place of a quarter of those that users and agents say, since all would be
    duplicates otherwise."""
    target = Dataset.create_or_open(folder)
    shared = ("domains", "tools", "agents", "personas")
    target.commit(
        run_id="bench", stage="tools", shard=0, tables={t: source.rows(t) for t in shared}
    )
    by_id: dict[str, defaultdict[str, list[Row]]] = {}
    for table in ("tool_calls", "verdicts"):
        by_id[table] = defaultdict(list)
        for row in source.rows(table):
            by_id[table][row["trajectory_id"]].append(row)
    of_task = {row["task_id"]: row for row in source.rows("tasks")}
    rows = [row for row in source.rows("trajectories") if is_episode(row)]
    for shard in range(-(-wanted // len(rows))):
        rng = random.Random(shard)
        tables: dict[str, list[Row]] = {
            "trajectories": [],
            "tool_calls": [],
            "verdicts": [],
            "tasks": [],
        }
        ids = {row["trajectory_id"]: f"{row['trajectory_id']}-{shard}" for row in rows}
        tasks_made = set()
        for row in rows[: wanted - shard * len(rows)]:
            task = f"{row['task_id']}-{shard}"
            messages = [_reworded(message, rng) for message in row["messages"]]
            changed = {
                "trajectory_id": ids[row["trajectory_id"]],
                "task_id": task,
                "messages": messages,
            }
            changed["episode_id"] = changed["trajectory_id"]
            tables["trajectories"].append(row | changed)
            if task not in tasks_made:
                tasks_made.add(task)
                tables["tasks"].append(of_task[row["task_id"]] | {"task_id": task})
            for table in ("tool_calls", "verdicts"):
                own = {"trajectory_id": changed["trajectory_id"]}
                tables[table] += [one | own for one in by_id[table][row["trajectory_id"]]]
        target.commit(run_id="bench", stage="rollouts", shard=shard, tables=tables)


def _reworded(message: Row, rng: random.Random) -> Row:
    if message["role"] not in ("user", "assistant") or not isinstance(message.get("content"), str):
        return message
    words = message["content"].split(" ")
    said = [w if rng.random() > 0.25 else f"w{rng.getrandbits(30):x}" for w in words]
    return message | {"content": " ".join(said)}


async def curated(folder: Path, settings: Row) -> Counter[str]:
    """Curate once, by the verdicts that are there; how many rows have which reason."""
    config = GradeConfig.model_validate({"code": [], "curation": settings, "workers": 1})
    async with open_run(config, str(folder), command="bench") as run:
        stage = CurationStage(run)
        [(_, ids), *_] = run.dataset.column("verdicts", "grading_id")
        stage.grading_id = ids[0]
        await run.run_stage(stage)
        *_, newest = run.dataset.in_commits("curation", ("curation_id", "drop_reason"))
        return Counter(row["drop_reason"] or "kept" for row in newest)


if __name__ == "__main__":
    main()
