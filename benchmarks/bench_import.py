"""Import of a file of real tools: time, memory, what became of each tool, and the duplicates.

    python benchmarks/bench_import.py TOOLS.jsonl.gz [--repeats 3]

Cases take turns, each in a process of its own: the whole import into a fresh dataset; the same rows
without looking for duplicates; and, as the baseline that the duplicates are compared with, every
pair of tools. The baseline must find the same tools. `injection` counts the hits of each rule and
prints their texts on stderr, to be read: on tools that people use, a hit is a false alarm until
somebody has read it. Prints one JSON line per case.
"""

import argparse
import asyncio
import json
import multiprocessing
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.measured import show, spread
from records.digest import digest
from records.tables.schemas import Row
from synth.catalogue.importing import ImportRequest, import_tools
from tool_specs.coverage.duplicates import is_near, preference, repeats, shingles
from tool_specs.importing.instructing.rules import RULES
from tool_specs.importing.instructing.texts import plain_form, texts_in
from tool_specs.importing.tool_files import read_listings
from tool_specs.importing.tool_lists import QUARANTINED, rows_of_answer

Measured = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, help="tools/list answers, one server a line")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    cases = (whole_import, without_duplicates, indexed_duplicates, duplicates_by_all_pairs)
    seen: dict[str, list[Measured]] = {case.__name__: [] for case in cases}
    for _ in range(options.repeats):
        for case in cases:
            seen[case.__name__].append(alone(case, options.file))
    for name, runs in seen.items():
        walls = spread([run.pop("wall_s") for run in runs])
        show({"name": name, **walls, "unit": "wall s", **runs[0]})
    same = {seen[case.__name__][0]["same_as"] for case in cases[2:]}
    print(json.dumps({"name": "both_find_the_same_duplicates", "value": len(same) == 1}))
    print(json.dumps({"name": "injection"} | rule_hits(options.file)))


def alone(case: Callable[[Path], Measured], path: Path) -> Measured:
    """The case in a process of its own, so that its peak of memory is its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(measured, (case, path))


def measured(case: Callable[[Path], Measured], path: Path) -> Measured:
    cpu, started = time.process_time(), time.perf_counter()
    result = case(path)
    wall = result.pop("wall_s", time.perf_counter() - started)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    used = result.pop("cpu_s", time.process_time() - cpu)
    return {"wall_s": wall, "cpu_s": round(used, 2), "peak_mib": peak} | result


def whole_import(path: Path) -> Measured:
    with tempfile.TemporaryDirectory() as folder:
        report = asyncio.run(import_tools(ImportRequest(files=(path,)), Path(folder) / "d"))
    totals = report.totals()
    reasons = {key: totals[key] for key in sorted(totals) if key != "kept"}
    return report.summary() | {"reasons": reasons}


def without_duplicates(path: Path) -> Measured:
    return {"rows": len(rows_in(path))}


def indexed_duplicates(path: Path) -> Measured:
    return timed(path, repeats_and_clusters)


def duplicates_by_all_pairs(path: Path) -> Measured:
    """The definition: each tool, best first, against all that stay."""

    def compare(rows: list[Row]) -> tuple[set[str], dict[str, int]]:
        kept: list[tuple[str, frozenset[tuple[str, ...]]]] = []
        dropped: set[str] = set()
        for row in sorted(rows, key=preference):
            grams = shingles(row)
            if any(s != row["server"] and is_near(grams, other) for s, other in kept):
                dropped.add(row["tool_id"])
            else:
                kept.append((row["server"], grams))
        return dropped, {}

    return timed(path, compare)


def repeats_and_clusters(rows: list[Row]) -> tuple[set[str], dict[str, int]]:
    found = repeats(rows)
    sizes = Counter(repeat.of for repeat in found.values())
    near = {repeat.of for repeat in found.values() if not repeat.exact}
    counts = {"clusters": len(sizes), "near_clusters": len(near)}
    return set(found), counts | {"largest": max(sizes.values()) + 1}


def timed(path: Path, find: Callable[[list[Row]], tuple[set[str], dict[str, int]]]) -> Measured:
    rows = [row for row in rows_in(path) if row["drop_reason"] is None]
    cpu, started = time.process_time(), time.perf_counter()
    dropped, more = find(rows)
    took = {"wall_s": time.perf_counter() - started, "cpu_s": time.process_time() - cpu}
    return took | {"left_out": len(dropped), "same_as": hash_of(dropped)} | more


def hash_of(ids: set[str]) -> str:
    return digest(sorted(ids))


def rows_in(path: Path) -> list[Row]:
    listings = read_listings(path)
    return [row for one in listings for row in rows_of_answer(one.tools, one.source, one.dialect)]


def rule_hits(path: Path) -> dict[str, Any]:
    """Hits by rule over every text of every tool, and how many tools are quarantined."""
    hits: Counter[str] = Counter()
    texts = 0
    rows = rows_in(path)
    for row in rows:
        for text in (row["name"], row["description"], *texts_in(row["input_schema"])):
            texts += 1
            plain = plain_form(text)
            for rule in RULES:
                if found := rule.pattern.search(plain):
                    hits[rule.name] += 1
                    around = plain[max(0, found.start() - 60) : found.end() + 60]
                    print(f"{rule.name} {row['server']} {row['name']}: {around!a}", file=sys.stderr)
    quarantined = sum(row["drop_reason"] in QUARANTINED for row in rows)
    rules = {rule.name: hits[rule.name] for rule in RULES}
    return {"tools": len(rows), "texts": texts, "quarantined": quarantined, "hits": rules}


if __name__ == "__main__":
    main()
