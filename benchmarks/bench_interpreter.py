"""Calls a second of the interpreter, one core, with validation, diff and state hash on.

    python benchmarks/bench_interpreter.py [--calls 20000] [--repeats 3]

Prints one JSON line per measurement. `catalogue` replays a mix of calls drawn over every built-in
domain (about a third of them fail, as calls do); `entities` makes the same call against worlds of
10, 1,000 and 100,000 rows: by id, by an indexed field with a page limit, one update, one create,
and a text search, which is linear and listed as such. The baseline of the same run is a bare dict
lookup with `json.dumps` of the row: what no interpreter can beat.
"""

import argparse
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tool_specs.domain import Domain, load_domains
from tool_specs.drawing import draw_arguments
from tool_specs.interpreter import World

STATUSES = ("open", "packed", "sent", "closed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=20_000, help="calls per repeat")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    for measurement in (*catalogue(options), *by_size(options)):
        print(json.dumps(measurement | hardware()))


def catalogue(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Every built-in domain, one world each that lives through all calls."""
    domains = load_domains()
    calls = list(drawn(domains, options.calls))

    def run(latencies: list[float]) -> None:
        worlds = {domain.name: World.of(domain) for domain in domains}
        for name, tool, arguments in calls:
            started = time.perf_counter()
            worlds[name].call(tool, arguments)
            latencies.append(time.perf_counter() - started)

    tools = sum(len(domain.tools) for domain in domains)
    yield measured("interpreter_catalogue", run, options, tools=tools, domains=len(domains))


def drawn(domains: list[Domain], calls: int) -> Iterator[tuple[str, str, Any]]:
    """Calls that make sense where they are made: drawn along one walk per domain."""
    rng = random.Random(0)
    for domain in domains:
        world = World.of(domain)
        for _ in range(calls // len(domains)):
            tool = rng.choice(domain.tools).name
            arguments = draw_arguments(world, tool, rng)
            world.call(tool, arguments)
            yield domain.name, tool, arguments


ARGUMENTS: dict[str, Callable[[random.Random, int], dict[str, Any]]] = {
    "get_parcel": lambda rng, size: {"parcel_id": key(rng, size)},
    "list_parcels": lambda rng, size: {"status": rng.choice(STATUSES), "limit": 10},
    "weigh_parcel": lambda rng, size: {"parcel_id": key(rng, size), "grams": rng.random()},
    "add_parcel": lambda rng, size: {"label": "box", "grams": rng.randint(1, 9)},
    "search_parcels": lambda rng, size: {"text": f"box {rng.randint(0, 9)}9"},
}


def key(rng: random.Random, size: int) -> str:
    return f"PA-{1001 + rng.randrange(size)}"


def by_size(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    for size in (10, 1000, 100_000):
        domain = warehouse(size)
        for name in ARGUMENTS:
            yield by_tool(domain, name, size, options)


def by_tool(domain: Domain, tool: str, size: int, options: argparse.Namespace) -> dict[str, Any]:
    linear = tool == "search_parcels" and size > 1000
    rng = random.Random(1)
    calls = [ARGUMENTS[tool](rng, size) for _ in range(20 if linear else options.calls // 10)]

    def run(latencies: list[float]) -> None:
        world = World.of(domain)
        world.call(tool, calls[0])  # builds the indexes, once per domain
        for given in calls:
            started = time.perf_counter()
            result = world.call(tool, given)
            latencies.append(time.perf_counter() - started)
            assert not result.is_error, result

    return measured("interpreter_entities", run, options, tool=tool, entities=size) | {
        "baseline_dict_and_json_per_s": baseline(domain)
    }


def warehouse(size: int) -> Domain:
    """One entity of `size` rows and a tool for each way of reaching them."""
    rng = random.Random(size)
    rows = [
        {
            "parcel_id": f"PA-{1001 + i}",
            "label": f"box {i}",
            "grams": rng.randint(1, 9000),
            "status": rng.choice(STATUSES),
        }
        for i in range(size)
    ]
    read = {"op": "read", "entity": "parcel", "key": "args.parcel_id", "as": "parcel"}
    one = {"parcel_id": {"type": "string", "ref": "parcel"}}
    grams = {"grams": {"type": "number", "min": 0}}
    make = {"label": "args.label", "grams": "args.grams", "status": "'open'"}
    status = {"type": "enum", "values": list(STATUSES)}
    limit = {"type": "integer", "min": 1, "max": 50}
    by_status = {"where": "parcel.status == args.status", "limit": "args.limit"}
    tools = [
        tool("get_parcel", one, [read], "parcel"),
        tool(
            "list_parcels",
            {"status": status, "limit": limit},
            [{"op": "read", "entity": "parcel", **by_status, "as": "found"}],
            "found",
        ),
        tool(
            "weigh_parcel",
            one | grams,
            [read, {"op": "update", "target": "parcel", "set": {"grams": "args.grams"}}],
            "parcel.grams",
        ),
        tool(
            "add_parcel",
            {"label": {"type": "string"}, **grams},
            [{"op": "create", "entity": "parcel", "set": make, "as": "parcel"}],
            "parcel.parcel_id",
        ),
        tool(
            "search_parcels",
            {"text": {"type": "string"}},
            [
                {
                    "op": "read",
                    "entity": "parcel",
                    "where": "parcel.label contains args.text",
                    "order_by": ["-grams"],
                    "as": "found",
                }
            ],
            "found",
        ),
    ]
    fields = {
        "parcel_id": {"type": "string"},
        "label": {"type": "string"},
        "grams": {"type": "number", "min": 0},
        "status": {"type": "enum", "values": list(STATUSES)},
    }
    return Domain.of(
        {
            "domain": "warehouse",
            "title": "Warehouse",
            "category": "transportation_logistics",
            "description": "Parcels of a benchmark.",
            "now": "2026-03-02T09:00:00",
            "entities": {"parcel": {"key": "parcel_id", "prefix": "PA-", "fields": fields}},
            "seed": {"parcel": rows},
            "tools": tools,
        },
        origin="warehouse",
    )


def tool(
    name: str, params: dict[str, Any], semantics: list[dict[str, Any]], answer: str
) -> dict[str, Any]:
    ending = {"op": "return", "value": {"answer": answer}}
    return {
        "name": name,
        "description": f"Benchmark of {name}.",
        "params": params,
        "semantics": [*semantics, ending],
    }


def baseline(domain: Domain) -> int:
    """Dict lookups with `json.dumps` of the row, a second."""
    world, n = World.of(domain), 20_000
    started = time.perf_counter()
    for _ in range(n):
        json.dumps(world.get("parcel", "PA-1001"))
    return round(n / (time.perf_counter() - started))


def measured(
    name: str, run: Callable[[list[float]], None], options: argparse.Namespace, **parameters: Any
) -> dict[str, Any]:
    """One warm-up, then the median of the repeats; percentiles over all their calls."""
    run([])
    rates, latencies = [], []
    for _ in range(options.repeats):
        own: list[float] = []
        run(own)
        rates.append(len(own) / sum(own))
        latencies += own
    cuts = statistics.quantiles(latencies, n=100)
    return {
        "name": name,
        "parameters": parameters,
        "value": round(statistics.median(rates)),
        "unit": "calls/s",
        "range": [round(min(rates)), round(max(rates))],
        "p50_us": round(cuts[49] * 1e6, 1),
        "p99_us": round(cuts[98] * 1e6, 1),
        "n": len(latencies),
    }


def hardware() -> dict[str, Any]:
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    return {
        "hardware": f"{os.cpu_count()} x {platform.processor() or platform.machine()}",
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 1),
        "commit": commit.stdout.strip() or None,
    }


if __name__ == "__main__":
    main()
