"""Calls a second of the interpreter, one core, with validation, diff and state hash on.

    python benchmarks/bench_interpreter.py [--dataset FOLDER] [--tools 1000] [--calls 20000]

Prints one JSON line per measurement. `catalogue` calls a uniform sample of the tools of a dataset,
or of the built-in domains without one, each with arguments drawn from its world (about a third of
the calls fail, as calls do). `growth` makes the same calls in worlds of the same domains that hold
their seed many times over, up to `--rows` rows: tools whose reads are all served by an index, and
those that scan; who became slower is listed. `entities` does so for one
plain entity, a tool for each way of reaching it. The baseline of the same run is a bare dict
lookup with `json.dumps` of the row: what no interpreter can beat.
"""

import argparse
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.measured import show, spread
from records.store.dataset import Dataset
from tests.tool_specs.environments import grown
from tool_specs.domains.catalogue import domain_of_rows
from tool_specs.domains.domain import Domain, load_domains
from tool_specs.domains.interpreter import DomainEnvironment
from tool_specs.execution import statements as execution
from tool_specs.validation.drawing import draw_arguments

STATUSES = ("open", "packed", "sent", "closed")

GROWTH_DOMAINS = 12
"""Of the catalogue, whose worlds are grown; building a large one takes seconds."""

GROWTH_CALLS = 15
"""Of each tool in each world."""


FRACTION = 50
"""Times smaller than the largest worlds are those that they are compared with."""

SLOWED = 3.0
"""Times slower than before, above which a tool is listed: below it is noise."""


class Call(NamedTuple):
    domain: str
    tool: str
    arguments: Any


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", type=Path, help="folder of a dataset; default: built-in")
    parser.add_argument("--tools", type=int, default=1000, help="sampled for `catalogue`")
    parser.add_argument("--calls", type=int, default=20_000, help="calls per repeat")
    parser.add_argument("--rows", type=int, default=100_000, help="of the largest worlds")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    domains = catalogue_domains(options)
    for measurement in (
        *catalogue(domains, options),
        *growth(domains, options),
        *by_size(options),
    ):
        show(measurement)


def catalogue_domains(options: argparse.Namespace) -> list[Domain]:
    """Every domain with its usable tools."""
    if not options.dataset:
        return load_domains()
    dataset = Dataset.open(options.dataset)
    tools: dict[str, list[Any]] = {}
    for row in dataset.rows("tools"):
        if row["semantics_json"] and not row["drop_reason"]:
            tools.setdefault(row["domain_id"], []).append(row)
    return [
        domain_of_rows(row, tools[row["domain_id"]])
        for row in dataset.rows("domains")
        if row["domain_id"] in tools
    ]


def catalogue(domains: list[Domain], options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """One environment for each domain, which lives through all its calls."""
    everything = [(i, tool.name) for i, domain in enumerate(domains) for tool in domain.tools]
    sampled = random.Random(0).sample(everything, min(options.tools, len(everything)))
    calls = drawn(domains, sampled, options.calls)
    by_name = {domain.name: domain for domain in domains}

    def run(latencies: list[float]) -> None:
        worlds = {
            name: DomainEnvironment.of(by_name[name]) for name in {call.domain for call in calls}
        }
        for name, tool, arguments in calls:
            started = time.perf_counter()
            worlds[name].call(tool, arguments)
            latencies.append(time.perf_counter() - started)

    counts = {"tools": len(sampled), "of": len(everything), "domains": len(domains)}
    yield measured("interpreter_catalogue", run, options, **counts)


def drawn(domains: list[Domain], sampled: list[tuple[int, str]], num_calls: int) -> list[Call]:
    """Calls that make sense where they are made: drawn along one walk for each domain."""
    rng = random.Random(0)
    worlds = {i: DomainEnvironment.of(domains[i]) for i, _ in sampled}
    calls = []
    for _ in range(-(-num_calls // len(sampled))):
        for i, tool in sampled:
            arguments = draw_arguments(worlds[i], tool, rng)
            worlds[i].call(tool, arguments)
            calls.append(Call(domains[i].name, tool, arguments))
    return calls[:num_calls]


class Cost(NamedTuple):
    seconds: float
    rows: float
    """Rows looked at and statements run in loops: what no load on the machine changes."""


def growth(domains: list[Domain], options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Median cost of each tool in an environment of `--rows` rows over that in one of a fiftieth,
    where pages are full as well."""
    rng = random.Random(0)
    found: dict[bool, dict[str, Cost]] = {True: {}, False: {}}
    for domain in rng.sample(domains, min(GROWTH_DOMAINS, len(domains))):
        rows = sum(map(len, domain.seed.values()))
        small, large = (
            DomainEnvironment(domain, grown(domain, max(1, most // rows)))
            for most in (options.rows // FRACTION, options.rows)
        )
        seed = DomainEnvironment.of(domain)
        for name, program in domain.programs.items():
            calls = [draw_arguments(seed, name, rng) for _ in range(GROWTH_CALLS)]
            before, after = (cost(environment, name, calls) for environment in (small, large))
            ratio = Cost(after.seconds / before.seconds, after.rows / max(1, before.rows))
            found[bool(program.scans)][f"{domain.name}.{name}"] = ratio
    for scans, tools in found.items():
        if tools:
            yield grown_by(tools, options, reads="scan" if scans else "indexed")


def grown_by(tools: dict[str, Cost], options: argparse.Namespace, *, reads: str) -> dict[str, Any]:
    times, rows = (sorted(ratios) for ratios in zip(*tools.values(), strict=True))
    slowed = {name: round(r.seconds, 1) for name, r in tools.items() if r.seconds > SLOWED}
    return {
        "name": "interpreter_growth",
        "parameters": {"reads": reads, "rows": options.rows},
        "value": round(statistics.median(times), 2),
        "unit": f"times slower than with {options.rows // FRACTION} rows, median of the tools",
        "range": [round(times[0], 1), round(times[-1], 1)],
        "p95": round(times[int(0.95 * (len(times) - 1))], 1),
        "rows_looked_at": {"median": round(statistics.median(rows), 2), "max": round(rows[-1], 1)},
        "n": len(tools),
        "slowed": dict(sorted(slowed.items(), key=lambda tool: -tool[1])),
    }


def cost(environment: DomainEnvironment, tool: str, calls: list[Any]) -> Cost:
    """Each call is made once before: the first of its kind builds the index that serves it."""
    times, rows = [], []
    for arguments in (*calls, *calls):
        trial = environment.snapshot()
        started = time.perf_counter()
        trial.call(tool, arguments)
        times.append(time.perf_counter() - started)
    spend = execution.spend
    for arguments in calls:
        spent: list[int] = []

        def counted(env: Any, steps: int, spent: list[int] = spent) -> None:
            spent.append(steps)
            spend(env, steps)

        execution.spend = counted
        try:
            environment.snapshot().call(tool, arguments)
        finally:
            execution.spend = spend
        rows.append(sum(spent))
    return Cost(statistics.median(times[len(calls) :]), statistics.median(rows))


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
        environment = DomainEnvironment.of(domain)
        environment.call(tool, calls[0])  # builds the indexes, once per domain
        for given in calls:
            started = time.perf_counter()
            result = environment.call(tool, given)
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
    environment, n = DomainEnvironment.of(domain), 20_000
    started = time.perf_counter()
    for _ in range(n):
        json.dumps(environment.get("parcel", "PA-1001"))
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
        **spread(rates, 0),
        "unit": "calls/s",
        "p50_us": round(cuts[49] * 1e6, 1),
        "p99_us": round(cuts[98] * 1e6, 1),
        "calls": len(latencies),
    }


if __name__ == "__main__":
    main()
