"""Evolution of synthetic tools by the offline model: `synth tools evolve`, measured.

    python benchmarks/bench_evolution.py [--count 500] [--specialise 0] [--dataset D] [--page FILE]
    python benchmarks/bench_evolution.py --read --dataset D --page FILE

Runs the command in a process of its own, Prefect and worker processes included, into a fresh
folder, or with `--read` looks at what a dataset holds. Prints one JSON line: tools kept, wall
clock, CPU of all processes, skeletons, acceptance. `--page` writes the results page with 50 pairs
of tools drawn at random within a domain. The tools are the offline model's: how many there are
and how they vary says nothing about what a model would write.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.measured import ROOT, machine, show
from records.seeds import rng_of
from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.catalogue.evolution.summary import lines, summarise

PAIRS = 50
STATEMENTS = {
    "read": "reads {entity}",
    "create": "creates {entity}",
    "update": "changes {set}",
    "delete": "deletes",
    "link": "adds to {field}",
    "unlink": "takes out of {field}",
    "require": "needs {error}",
    "for_each": "for each",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--specialise", type=int, default=0)
    parser.add_argument("--dataset", type=Path, help="folder to evolve into; default: a temporary")
    parser.add_argument("--read", action="store_true", help="evolve nothing, read the dataset")
    parser.add_argument("--page", type=Path, help="results page to write")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.dataset or Path(temporary) / "data"
        command = ["tools", "evolve", "--count", str(options.count), "--set", "quotas.on=false"]
        command += ["--specialise", str(options.specialise)] if options.specialise else []
        cost = {} if options.read else cost_of(command, folder)
        dataset = Dataset.open(folder)
        summary = summarise(dataset)
        found = {
            "name": "evolution",
            "parameters": {"count": options.count, "specialise": options.specialise},
            "value": summary["tools"],
            "unit": "tools",
            "n": 1,
            **cost,
            **{name: summary[name] for name in ("asked", "skeletons", "largest_share")},
        }
        if cost and summary["tools"]:
            found["cpu_ms_per_tool"] = round(1000 * cost["cpu_s"] / summary["tools"], 1)
        if options.page:
            options.page.write_text(page_of(found | machine(), summary, dataset, " ".join(command)))
    show(found)


def cost_of(command: list[str], folder: Path) -> dict[str, float]:
    """Wall clock and CPU of the command and everything that it starts."""
    begun, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    argv = [sys.executable, "-m", "flows.cli.main", *command, "--dataset", str(folder)]
    subprocess.run(argv, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    wall = time.monotonic() - begun
    return {"wall_s": round(wall, 1), "cpu_s": round(cpu, 1)}


def page_of(found: dict[str, Any], summary: dict[str, Any], dataset: Dataset, command: str) -> str:
    said = ", ".join(f"{k} {v}" for k, v in found.items() if k not in ("name", "parameters"))
    cells = [f"| {c['category']} | {c['covered']} | {c['tools']} |" for c in summary["cells"]]
    return "\n".join(
        [
            "# Evolution of synthetic tools (offline model)",
            "",
            f"`synth {command}`, by `benchmarks/bench_evolution.py`: {said}.",
            "",
            "Written by the offline model: these figures show what the gate and the operators",
            "do, and nothing of what a model would write.",
            "",
            "```",
            *lines(summary),
            "```",
            "",
            "| category | domains | tools |",
            "|---|---:|---:|",
            *cells,
            "",
            f"## {PAIRS} pairs, each drawn at random within a domain",
            "",
            *(f"{line}" for pair in pairs_of(dataset) for line in pair),
        ]
    )


def pairs_of(dataset: Dataset) -> list[list[str]]:
    """Markdown of the pairs: the domain by its share of all tools, then two of its tools."""
    made = {row["tool_id"] for row in dataset.rows("proposals", ["item_id", "number", "tool_id"])}
    tools = [row for row in dataset.rows("tools") if row["tool_id"] in made]
    names = {row["domain_id"]: row["name"] for row in dataset.rows("domains")}
    sizes = Counter(row["domain_id"] for row in tools)
    tools = [row for row in tools if sizes[row["domain_id"]] > 1]
    rng = rng_of("pairs", "bench_evolution")
    found: list[list[str]] = []
    while len(found) < PAIRS and tools:
        one = rng.choice(tools)
        others = [t for t in tools if t["domain_id"] == one["domain_id"] and t is not one]
        head = [f"{len(found) + 1}. `{names[one['domain_id']]}`", ""]
        found.append([*head, *(told(tool) for tool in (one, rng.choice(others))), ""])
    return found


def told(tool: Row) -> str:
    """One line: what a model reads of the tool, then what it does."""
    params = ", ".join(
        f"{name}{'?' if spec.get('optional') else ''}: {spec['type']}"
        for name, spec in tool["params"].items()
    )
    steps = [
        words.format_map({**statement, "set": ", ".join(statement.get("set", ()))})
        for statement in tool["semantics_json"]
        if (words := STATEMENTS.get(statement["op"]))
    ]
    does = "; ".join(steps)
    return f"   - `{tool['name']}({params})` {tool['description']} [{tool['evolve_op']}: {does}]"


if __name__ == "__main__":
    main()
