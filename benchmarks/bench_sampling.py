"""Toolsets a second and how coherent they are, beside sets drawn without the graph. One core.

    python benchmarks/bench_sampling.py [--dataset FOLDER] [--tools 26000] [--sets 10000]

The catalogue is that of a dataset, or, without one, the built-in domains copied under other ids
until there are `--tools` (the graph of a copy is that of its original, so the time is real and the
variety is not). Prints one JSON line per measurement: the graph, then for each shape the sets of
the sampler and two baselines of the same sizes, random tools of the whole catalogue and random
tools of one source. Coherence is measured the same way for all: `connected`, share of cores that
edges hold together; `needs_met`, share of needed ids that another tool of the core gives, of
those that any tool of the source gives; `edges_per_tool`.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.measured import show, spread
from records.digest import digest
from records.seeds import rng_of
from records.store.dataset import Dataset
from records.tables.schemas import Row
from tool_specs.domains.catalogue import domain_row, tool_rows
from tool_specs.domains.domain import load_domains
from tool_specs.toolsets.dependencies import Graph
from tool_specs.toolsets.toolsets import Shape, sample_toolsets

SHAPES = (
    Shape(core=4, sources=1, distractors=0),
    Shape(core=8, sources=1, distractors=3),
    Shape(core=8, sources=2, distractors=3),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", type=Path, help="folder of a dataset; default: built-in")
    parser.add_argument("--tools", type=int, default=26_000, help="tools, without a dataset")
    parser.add_argument("--sets", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    for measurement in measurements(options):
        show(measurement)


def measurements(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    tools, domains = catalogue_of(options)
    graph, seconds = timed(lambda: Graph(tools, domains), options.repeats)
    yield {
        "name": "sampling_graph",
        "parameters": {"tools": len(graph.ids), "sources": len(graph.by_source)},
        **spread(seconds),
        "unit": "CPU s",
        "joined_tools": sum(graph.component_size[c] > 1 for c in graph.component),
    }
    at = {tool_id: i for i, tool_id in enumerate(graph.ids)}
    for shape in SHAPES:
        sets, seconds = timed(
            lambda shape=shape: sample_toolsets(graph, shape, seed=1, count=options.sets),
            options.repeats,
        )
        cores = [[at[tool] for tool in s.core] for s in sets]
        yield {
            "name": "sampling_sets",
            "parameters": shape.model_dump() | {"sets": len(sets)},
            **spread(seconds),
            "unit": "CPU s",
            "coherence": coherence(graph, cores),
            "baseline_random_of_catalogue": coherence(graph, anywhere(graph, shape, len(sets))),
            "baseline_random_of_source": coherence(graph, of_source(graph, shape, len(sets))),
        }


def catalogue_of(options: argparse.Namespace) -> tuple[list[Row], list[Row]]:
    if options.dataset:
        dataset = Dataset.open(options.dataset)
        return dataset.rows("tools"), dataset.rows("domains")
    own = [(domain_row(domain), tool_rows(domain)) for domain in load_domains()]
    tools: list[Row] = []
    domains: list[Row] = []
    copy = 0
    while len(tools) < options.tools:
        for domain, rows in own:
            place = digest(domain["domain_id"], copy)
            domains.append({**domain, "domain_id": place})
            tools += [
                row
                | {"domain_id": place, "tool_id": digest(row["tool_id"], copy)}
                | {"name": f"{row['name']}_{copy}"}
                for row in rows
            ]
        copy += 1
    return tools[: options.tools], domains


def timed(make: Callable[[], Any], repeats: int) -> tuple[Any, list[float]]:
    """The result, and the CPU seconds of each repeat, which is what one idle core would take; a
    warm-up is left out."""
    result, seconds = make(), []
    for _ in range(repeats):
        started = time.process_time()
        result = make()
        seconds.append(time.process_time() - started)
    return result, seconds


def anywhere(graph: Graph, shape: Shape, count: int) -> list[list[int]]:
    everything = range(len(graph.ids))
    return [rng_of("anywhere", "baseline", i).sample(everything, shape.core) for i in range(count)]


def of_source(graph: Graph, shape: Shape, count: int) -> list[list[int]]:
    """Random tools of as many random sources as the shape has, the same number of each."""
    share = -(-shape.core // shape.sources)
    large = [tools for _, tools in sorted(graph.by_source.items()) if len(tools) >= share]
    sets = []
    for i in range(count):
        rng = rng_of("of_source", "baseline", i)
        sources = rng.sample(large, shape.sources)
        sets.append([tool for own in sources for tool in rng.sample(own, share)])
    return sets


def coherence(graph: Graph, cores: Sequence[Sequence[int]]) -> dict[str, float]:
    connected = met = needed = edges = tools = 0
    for core in cores:
        own = graph.edges_among(core)
        connected += is_connected([graph.ids[tool] for tool in core], own)
        edges += len(own)
        tools += len(core)
        given = Counter(io_type for tool in core for io_type in graph.io_types[tool].gives)
        for tool in core:
            mine = graph.io_types[tool].gives
            io_types = [k.io_type for k in graph.links[tool] if k.needed and k.io_type.source]
            needed += len(io_types)
            met += sum(given[io_type] > (io_type in mine) for io_type in io_types)
    return {
        "connected": round(connected / len(cores), 3),
        "needs_met": round(met / max(1, needed), 3),
        "edges_per_tool": round(edges / tools, 2),
    }


def is_connected(tools: Sequence[str], edges: Sequence[Any]) -> bool:
    reached = {tools[0]}
    for _ in tools:
        reached |= {e.giver for e in edges if e.taker in reached}
        reached |= {e.taker for e in edges if e.giver in reached}
    return len(reached) == len(set(tools))


if __name__ == "__main__":
    main()
