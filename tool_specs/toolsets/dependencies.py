"""The dependency graph of a catalogue: a tool's answer feeds another tool's arguments.

An edge carries a port (see `io_types`). Edges are never listed for the whole catalogue, where a
domain of a hundred tools has thousands: two indexes, from an io type to those who give it and to
those who ask for it, hold the graph in time and memory linear in the tools.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from records.tables.schemas import Row
from tool_specs.toolsets.io_types import IoType, io_types_of, source_of


class Edge(NamedTuple):
    giver: str
    """Tool ids."""
    taker: str
    carries: str
    """Entity or noun whose id or value it is."""
    required: bool
    """The taker cannot be called without it."""


class DependencyLink(NamedTuple):
    io_type: IoType
    others: Sequence[int]
    """Tools at its other end, sorted; the tool itself may be among them."""
    needed: bool
    """The tool cannot be called without what the others give."""


class Graph:
    """Tools by position, sorted by id: the order of the rows that it is made of is nothing."""

    def __init__(self, tools: Iterable[Row], domains: Iterable[Row] = ()) -> None:
        """`domains` are the rows that the synthetic tools refer to. Dropped tools are left out."""
        entities = {domain["domain_id"]: domain["entities"] for domain in domains}
        usable = {tool["tool_id"]: tool for tool in tools if not tool["drop_reason"]}
        self.ids = sorted(usable)
        rows = [usable[tool_id] for tool_id in self.ids]
        self.names = [row["name"] for row in rows]
        self.categories = [row["category"] for row in rows]
        self.sources = [source_of(row) for row in rows]
        self.io_types = [io_types_of(row, entities.get(row["domain_id"] or "")) for row in rows]
        self.givers: dict[IoType, list[int]] = {}
        self.takers: dict[IoType, list[int]] = {}
        for tool, (gives, needs, takes) in enumerate(self.io_types):
            for io_type in gives:
                self.givers.setdefault(io_type, []).append(tool)
            for io_type in needs | takes:
                self.takers.setdefault(io_type, []).append(tool)
        self.by_source: dict[str, list[int]] = {}
        for tool, source in enumerate(self.sources):
            self.by_source.setdefault(source, []).append(tool)
        self.component = self._components()
        self.component_size = Counter(self.component)
        self.links = [self._links(tool) for tool in range(len(self.ids))]
        """Ids and values of each tool that some other tool gives or asks for, sorted; sets of them
        have no order that is the same in two processes."""

    def _links(self, tool: int) -> tuple[DependencyLink, ...]:
        gives, needs, takes = self.io_types[tool]
        found = [DependencyLink(io_type, self.takers.get(io_type, ()), False) for io_type in gives]
        found += [DependencyLink(p, self.givers.get(p, ()), p in needs) for p in needs | takes]
        return tuple(sorted(link for link in found if link.others and link.others != [tool]))

    def _components(self) -> list[int]:
        """For each tool a number that it shares with those it is joined to, whichever way edges
        point, over the ids of its own source."""
        parent = list(range(len(self.ids)))

        def root(tool: int) -> int:
            while parent[tool] != tool:
                parent[tool] = parent[parent[tool]]
                tool = parent[tool]
            return tool

        for io_type, givers in self.givers.items():
            if io_type.source and (takers := self.takers.get(io_type)):
                first = root(givers[0])
                for tool in (*givers, *takers):
                    parent[root(tool)] = first
        return [root(tool) for tool in range(len(self.ids))]

    def asks(self, tool: int) -> frozenset[IoType]:
        return self.io_types[tool].needs | self.io_types[tool].takes

    def joined(self, a: int, b: int) -> bool:
        """Whether an edge runs between two tools, either way."""
        return not self.io_types[a].gives.isdisjoint(self.asks(b)) or not self.io_types[
            b
        ].gives.isdisjoint(self.asks(a))

    def edges_among(self, tools: Iterable[int]) -> list[Edge]:
        """Every edge between the tools, sorted; of two io types between a pair, both. Within a
        source ids count, between sources values: the same noun twice would be one thing told
        twice."""
        chosen = sorted(set(tools))
        return sorted(
            Edge(self.ids[a], self.ids[b], io_type.name, io_type in self.io_types[b].needs)
            for a in chosen
            for b in chosen
            if a != b
            for io_type in self.io_types[a].gives & self.asks(b)
            if bool(io_type.source) == (self.sources[a] == self.sources[b])
        )
