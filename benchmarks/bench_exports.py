"""Exports of 100,000 trajectories: rows a second and peak memory, by format and type of file.

    python benchmarks/bench_exports.py DATASET [--rows 10000 100000] [--formats hf trl]

The accepted trajectories of a dataset that a run made, over and over under other ids, with their
tasks, newest decisions, verdicts and calls. For `preferences` every second one is an attempt that
the agent failed. Each export is a process of its own, so that its peak of memory is its own. Prints
one JSON line per export; memory is flat where the peaks of few and of many rows are alike. It takes
about 1 GB of the temporary folder at a time.
"""

import argparse
import json
import multiprocessing
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.marked_rows import commit, marked
from benchmarks.measured import show
from records.digest import digest
from records.store.dataset import Dataset
from records.tables.schemas import JSON, Row
from synth.exports.export import export_dataset
from synth.exports.formats.registry import FORMATS

COPIES = 16
"""Of the dataset's trajectories, that one commit brings."""

ONCE = ("domains", "tools", "agents", "personas", "runs", "calibration")

Tables = dict[str, pa.Table]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--formats", nargs="+", choices=FORMATS, default=list(FORMATS))
    options = parser.parse_args()
    for number in options.rows:
        for in_pairs in (False, True):
            names = [n for n in options.formats if (n == "preferences") is in_pairs]
            if names:
                measure(options.dataset, number, names, in_pairs=in_pairs)


def measure(dataset: Path, number: int, names: list[str], *, in_pairs: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        many = Path(folder) / "many"
        alone(multiply, dataset, many, number, in_pairs)
        for name in names:
            for file_type in FORMATS[name].file_types:
                out = Path(folder) / "out"
                show({"trajectories": number} | alone(measured, many, out, name, file_type))
                shutil.rmtree(out)


def alone(work: Any, *arguments: Any) -> Any:
    """The work in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, arguments)


def multiply(source: Path, target: Path, number: int, in_pairs: bool) -> None:
    """A dataset with so many trajectories of the training split, all accepted; or the half of them,
    and the other half failed attempts at the same tasks."""
    old, new = Dataset.open(source), Dataset.create_or_open(target)
    commit(new, "tools", 0, {table: old.arrow(table) for table in ONCE}, {})
    base = accepted_in(old)
    if in_pairs:
        failed = failed_attempts(base)
        base |= {table: pa.concat_tables([base[table], rows]) for table, rows in failed.items()}
    size = base["trajectories"].num_rows
    copies = -(-number // size)
    for shard, first in enumerate(range(0, copies, COPIES)):
        many = [
            {
                table: marked(rows, digest("copy", n)[:8])
                for table, rows in first_of(base, number - n * size)
            }
            for n in range(first, min(first + COPIES, copies))
        ]
        tables = {table: pa.concat_tables([one[table] for one in many]) for table in base}
        commit(new, "rollouts", shard, tables, {})


def accepted_in(dataset: Dataset) -> Tables:
    """What belongs to accepted trajectories of the training split."""
    with dataset.connect() as db:
        chosen = db.sql(
            "SELECT trajectory_id, task_id FROM trajectories JOIN sft USING (trajectory_id) "
            "WHERE sft.split = 'train' ORDER BY trajectory_id"
        ).to_arrow_table()
    tables = ("trajectories", "curation", "verdicts", "tool_calls")
    found = {t: among(dataset.arrow(t), "trajectory_id", chosen) for t in tables}
    return found | {"tasks": among(dataset.arrow("tasks"), "task_id", chosen)}


def among(rows: pa.Table, key: str, chosen: pa.Table) -> pa.Table:
    return rows.filter(pc.field(key).isin(chosen[key].to_pylist()))


def first_of(base: Tables, number: int) -> list[tuple[str, pa.Table]]:
    """As many trajectories as that, or all, with what belongs to them."""
    if number >= base["trajectories"].num_rows:
        return list(base.items())
    chosen = base["trajectories"].slice(0, number)
    keys = {"tasks": "task_id"}
    return [(t, among(rows, keys.get(t, "trajectory_id"), chosen)) for t, rows in base.items()]


def failed_attempts(accepted: Tables) -> Tables:
    """Each trajectory again, with another last answer, rejected through the agent's failure."""
    tables = ("trajectories", "curation", "verdicts", "tool_calls")
    found = {table: accepted[table] for table in tables}
    for table, rows in found.items():
        for name in ("trajectory_id", "episode_id"):
            if name in rows.column_names:
                parts = [rows[name], pa.scalar("failed"), "-"]
                own = pc.call_function("binary_join_element_wise", parts)
                rows = replaced(rows, name, own)
        found[table] = rows
    number = found["trajectories"].num_rows
    texts = [ended_otherwise(text) for text in found["trajectories"]["messages"].to_pylist()]
    messages = pa.ExtensionArray.from_storage(JSON, pa.array(texts, pa.utf8()))
    found["trajectories"] = replaced(found["trajectories"], "messages", messages)
    decided = {"accepted": False, "drop_reason": "failed_state", "attributed_to": "agent"}
    for name, value in decided.items():
        found["curation"] = replaced(found["curation"], name, pa.array([value] * number))
    return found


def replaced(rows: pa.Table, name: str, values: Any) -> pa.Table:
    return rows.set_column(rows.column_names.index(name), rows.schema.field(name), values)


def ended_otherwise(text: str) -> str:
    messages: list[Row] = json.loads(text)
    *rest, last = messages
    assert last["role"] == "assistant", last["role"]
    return json.dumps([*rest, last | {"content": "That cannot be done."}])


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
