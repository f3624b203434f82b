"""Import of conversations: rows a second and peak memory, by number of rows.

    python -m benchmarks.bench_trajectory_import [--rows 2000,20000] [--format jsonl]

Writes conversations of about 6 KB with three toolsets, as a fine-tuning file or a list in one JSON
document, imports them into a fresh dataset, and imports them again, each size in a process of its
own. Prints one JSON line per size; memory that grows with the rows shows between the lines.
"""

import argparse
import json
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.measured import show
from synth.importing.importing import TrajectoryImport, import_trajectories

CALLS = 4
"""Of a conversation."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", default="2000,20000", help="sizes, comma separated")
    parser.add_argument("--format", choices=("jsonl", "json"), default="jsonl")
    options = parser.parse_args()
    for size in map(int, options.rows.split(",")):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            show(pool.apply(measured, (size, options.format)))


def measured(size: int, form: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"rows.{form}"
        _write(file, size)
        request = TrajectoryImport(files=(str(file),))
        seconds, added = [], []
        for _ in range(2):
            start = time.perf_counter()
            report = import_trajectories(request, Path(folder) / "d")
            seconds.append(time.perf_counter() - start)
            added.append(report.added)
        assert added == [size, 0], added
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        return {
            "name": "trajectory_import",
            "rows": size,
            "file_mb": round(file.stat().st_size / 1e6, 1),
            "value": round(size / seconds[0], 1),
            "unit": "rows/s",
            "again_rows_per_s": round(size / seconds[1], 1),
            "peak_mb": peak,
        }


def _write(file: Path, size: int) -> None:
    with file.open("w", encoding="utf-8") as out:
        if file.suffix == ".jsonl":
            out.writelines(json.dumps(row) + "\n" for row in _rows(size))
            return
        out.write("[")
        for number, row in enumerate(_rows(size)):
            out.write((",\n" if number else "") + json.dumps(row, indent=1))
        out.write("]")


def _rows(size: int) -> Iterator[dict[str, Any]]:
    for number in range(size):
        tools = [_tool(n) for n in range(4 + number % 3)]
        messages: list[dict[str, Any]] = [
            {"role": "system", "content": "You look after the boats of a harbour. " * 20},
            {"role": "user", "content": f"What is known of boat B-{number}? " * 5},
        ]
        for call in range(CALLS):
            function = {"name": f"look_up_{call}", "arguments": json.dumps({"boat": f"B-{number}"})}
            made = {"id": f"c{call}", "type": "function", "function": function}
            result = {"boat": f"B-{number}", "notes": "moored at the east pier " * 20}
            messages += [
                {"role": "assistant", "content": "", "tool_calls": [made]},
                {"role": "tool", "tool_call_id": f"c{call}", "content": json.dumps(result)},
            ]
        messages.append({"role": "assistant", "content": "It is moored at the east pier. " * 10})
        yield {"messages": messages, "tools": tools}


def _tool(number: int) -> dict[str, Any]:
    parameters = {
        "type": "object",
        "properties": {"boat": {"type": "string", "description": "Its id."}},
        "required": ["boat"],
    }
    words = f"Look up part {number} of what is known of a boat."
    function = {"name": f"look_up_{number}", "description": words, "parameters": parameters}
    return {"type": "function", "function": function}


if __name__ == "__main__":
    main()
