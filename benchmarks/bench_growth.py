"""How fast seeds grow, and whether calls stay as fast in what they grow to; one core.

    python benchmarks/bench_growth.py [--sizes 1000 10000] [--calls 3000]

Prints one JSON line per measurement. `growth` is rows a second over some built-in domains.
`growth_calls` makes calls of every tool of them, with arguments drawn there, from the file's seed
and from each size: tools whose reads an index serves, and those that scan. The baseline of the same
run is the file's seed.
"""

import argparse
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.measured import show, spread
from tool_specs.domains.domain import Domain, load_domains
from tool_specs.domains.interpreter import DomainEnvironment
from tool_specs.growth.growing import grow
from tool_specs.growth.grown_seed import GROWN, GrownSeed
from tool_specs.validation.drawing import draw_arguments

DOMAINS = ("web_shop", "clinic_desk", "letting_office", "parcel_depot")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 10_000])
    parser.add_argument("--calls", type=int, default=3000, help="per domain, size and repeat")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    domains = load_domains(DOMAINS)
    for measurement in (*growing(domains, options), *calling(domains, options)):
        show(measurement)


def growing(domains: list[Domain], options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    for size in options.sizes:
        rates = []
        for number in range(options.repeats):
            started, rows = time.perf_counter(), 0
            for domain in domains:
                found = grow(
                    domain.file,
                    domain.seed_state,
                    domain.invariants,
                    rows=size,
                    number=number,
                    split="train",
                )
                rows += sum(map(len, found.rows.values()))
            rates.append(rows / (time.perf_counter() - started))
        yield {"name": "growth", "rows": size, "domains": len(domains), "unit": "rows/s"} | spread(
            rates
        )


def calling(domains: list[Domain], options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    for size in (None, *options.sizes):
        patch = None if size is None else {GROWN: GrownSeed(rows=size).model_dump()}
        mean = sum(sum(map(len, d.seed.values())) for d in domains) // len(domains)
        for scans in (False, True):
            rates = []
            for repeat in range(options.repeats):
                environments = [DomainEnvironment.of(domain, patch) for domain in domains]
                spent = [seconds_of(e, options.calls, repeat, scans) for e in environments]
                rates.append(len(domains) * options.calls / sum(spent))
            yield {
                "name": "growth_calls",
                "rows": size or mean,
                "reads": "scan" if scans else "index",
                "unit": "calls/s",
            } | spread(rates)


def seconds_of(environment: DomainEnvironment, calls: int, repeat: int, scans: bool) -> float:
    rng = random.Random(repeat)
    programs = environment.domain.programs
    tools = [name for name, program in programs.items() if bool(program.scans) == scans]
    drawn = [(tool, draw_arguments(environment, tool, rng)) for tool in tools * 8]
    given = [(tool, arguments) for tool, arguments in drawn if arguments is not None]
    for tool, arguments in given:
        environment.snapshot().call(tool, arguments)  # builds the indexes
    started = time.perf_counter()
    for i in range(calls):
        environment.call(*given[i % len(given)])
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
