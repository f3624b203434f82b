"""Toolsets drawn from the dependency graph: a connected core, and distractors that feed nothing.

A core grows from one tool. What its tools need and none of them gives comes first, so that the set
can be worked with; then anything that an edge joins to it. A core over several sources is grown in
each of them, and crosses by a value that one gives and the other asks for. Every draw hangs on
(seed, index): set i is the same whatever the count, and whatever order the tools came in.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from random import Random
from typing import NamedTuple

from pydantic import Field

from records.config import Config
from records.errors import ConfigError
from records.seeds import rng_of
from tool_specs.toolsets.dependencies import DependencyLink, Edge, Graph

_ATTEMPTS = 100
"""Draws for one set before it counts as not to be had."""

_TRIES = 8
"""Random picks before all that could be picked are listed."""


class Shape(Config):
    """Declared sizes of a toolset."""

    core: int = Field(default=6, ge=1, le=64)
    """Tools that hang together."""

    sources: int = Field(default=1, ge=1, le=8)
    """Domains and servers that the core spreads over, as evenly as it divides."""

    distractors: int = Field(default=2, ge=0, le=64)
    """Tools of other sources that no edge joins to the core."""


class Toolset(NamedTuple):
    core: tuple[str, ...]
    """Tool ids, in the order in which the core grew."""
    edges: tuple[Edge, ...]
    """Every edge among the core."""
    distractors: tuple[str, ...]


def sample_toolsets(graph: Graph, shape: Shape, *, seed: int, count: int) -> list[Toolset]:
    """`count` sets, no two of them the same tools. Raises ConfigError where the catalogue has too
    few: it says how many were found."""
    if shape.core < shape.sources:
        raise ConfigError(
            f"core must be at least sources, a tool of each; got {shape.core} for {shape.sources}"
        )
    sampler, item = ToolsetSampler(graph), f"{seed}/{shape.model_dump_json()}"
    seen: set[frozenset[int]] = set()
    sets: list[Toolset] = []
    for index in range(count):
        rng = rng_of(item, "toolset", index)
        for _ in range(_ATTEMPTS):
            drawn = sampler.draw(rng, shape)
            if (
                drawn is not None
                and (tools := frozenset(drawn.core + drawn.distractors)) not in seen
            ):
                seen.add(tools)
                sets.append(sampler.named(drawn))
                break
        else:
            raise ConfigError(
                f"the catalogue of {len(graph.ids)} tools gives {index} different toolsets with "
                f"core = {shape.core}, sources = {shape.sources}, distractors = "
                f"{shape.distractors}, not {count}; ask for fewer, or for another size"
            )
    return sets


class DrawnToolset(NamedTuple):
    """A set by the positions of its tools in the graph."""

    core: tuple[int, ...]
    distractors: tuple[int, ...]


class ToolsetSampler:
    """Draws from one graph; keeps what depends on sizes alone."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._starts: dict[tuple[int, bool], list[list[int]]] = {}
        near: dict[str, set[str]] = {}
        for source, category in zip(graph.sources, graph.categories, strict=True):
            near.setdefault(category, set()).add(source)
        self._near = {category: sorted(sources) for category, sources in near.items()}
        self._all = sorted(graph.by_source)

    def named(self, drawn: DrawnToolset) -> Toolset:
        ids = self.graph.ids
        return Toolset(
            tuple(ids[tool] for tool in drawn.core),
            tuple(self.graph.edges_among(drawn.core)),
            tuple(ids[tool] for tool in drawn.distractors),
        )

    def draw(self, rng: Random, shape: Shape) -> DrawnToolset | None:
        """None where this draw led nowhere; another may do better."""
        shares = [
            shape.core // shape.sources + (i < shape.core % shape.sources)
            for i in range(shape.sources)
        ]
        starts = self._starts_of(shares[0], crossing=shape.sources > 1)
        if not starts:
            return None
        growth = _Growth(self.graph, rng)
        growth.add(rng.choice(rng.choice(starts)))
        for i, share in enumerate(shares):
            if i and not growth.cross(share):
                return None
            if not growth.grow(share):
                return None
        distractors = self.distractors(rng, growth.tools, shape.distractors)
        if len(distractors) < shape.distractors:
            return None
        return DrawnToolset(tuple(growth.tools), tuple(distractors))

    def within(self, rng: Random, source: str, size: int) -> list[int]:
        """A core of `size` tools of one source, as connected as the source allows: where no edge
        leads on, it goes on from another tool. Fewer where names repeat."""
        own = self.graph.by_source.get(source, [])
        largest = max((self._reach(tool) for tool in own), default=0)
        growth = _Growth(self.graph, rng)
        growth.add(rng.choice([t for t in own if self._reach(t) >= min(size, largest)]))
        while len(growth.tools) < size and not growth.grow(size):
            rest = [t for t in own if growth.may_add(t)]
            if not rest:
                break
            growth.add(rng.choice(rest))
        return growth.tools

    def distractors(self, rng: Random, core: Sequence[int], count: int) -> list[int]:
        """Tools that no edge joins to the core, of other sources, no name twice; every other one
        of a category of the core, so that it looks at home. Fewer where there are no more."""
        graph = self.graph
        found: list[int] = []
        names = {graph.names[tool] for tool in core}
        sources = {graph.sources[tool] for tool in core}
        kin = self._near[graph.categories[core[0]]]
        for _ in range(count * _ATTEMPTS):
            if len(found) == count:
                break
            source = rng.choice(kin if len(found) % 2 == 0 and len(kin) > 1 else self._all)
            tool = rng.choice(graph.by_source[source])
            if source in sources or graph.names[tool] in names:
                continue
            if not any(graph.joined(tool, other) for other in core):
                found.append(tool)
                names.add(graph.names[tool])
        return found

    def _reach(self, tool: int) -> int:
        return self.graph.component_size[self.graph.component[tool]]

    def _starts_of(self, size: int, *, crossing: bool) -> list[list[int]]:
        """Tools from which a core of the size can grow, by source, so that a small source is drawn
        as often as a large one."""
        if (size, crossing) not in self._starts:
            found = []
            for source in self._all:
                own = [t for t in self.graph.by_source[source] if self._reach(t) >= size]
                if crossing:
                    own = [
                        t for t in own if any(self._leads_out(t, k) for k in self.graph.links[t])
                    ]
                if own:
                    found.append(own)
            self._starts[size, crossing] = found
        return self._starts[size, crossing]

    def _leads_out(self, tool: int, link: DependencyLink) -> bool:
        sources = self.graph.sources
        return not link.io_type.source and any(sources[o] != sources[tool] for o in link.others)


class _Growth:
    """A core in the making."""

    def __init__(self, graph: Graph, rng: Random) -> None:
        self.graph, self.rng = graph, rng
        self.tools: list[int] = []
        self.names: set[str] = set()
        self.newest = 0
        """Where the tools of the source that is being grown begin."""

    def may_add(self, tool: int) -> bool:
        return self.graph.names[tool] not in self.names

    def add(self, tool: int) -> None:
        self.tools.append(tool)
        self.names.add(self.graph.names[tool])

    def grow(self, size: int) -> bool:
        """Until `size` tools are of this source; False where no edge leads to another one."""
        while len(self.tools) - self.newest < size:
            tool = self._wanted()
            if tool is None:  # not `or`: a tool may stand at position 0
                tool = self._joined()
            if tool is None:
                return False
            self.add(tool)
        return True

    def cross(self, size: int) -> bool:
        """Take a tool that a value joins to the core and that can grow to `size` in its source."""
        graph = self.graph
        sources = {graph.sources[tool] for tool in self.tools}
        links = [k for tool in self.tools for k in graph.links[tool] if not k.io_type.source]
        self.rng.shuffle(links)
        for link in links[:_TRIES]:
            for tool in self._sample(link.others):
                if (
                    graph.sources[tool] not in sources
                    and graph.component_size[graph.component[tool]] >= size
                    and self.may_add(tool)
                ):
                    self.newest = len(self.tools)
                    self.add(tool)
                    return True
        return False

    def _wanted(self) -> int | None:
        """A tool that gives what one of the core needs and no other of it gives."""
        own = self.tools[self.newest :]
        given = Counter(io_type for tool in own for io_type in self.graph.io_types[tool].gives)
        links = [
            link
            for tool in own
            for link in self.graph.links[tool]
            if link.needed
            and link.io_type.source
            and given[link.io_type] == (link.io_type in self.graph.io_types[tool].gives)
        ]
        return self._of(links)

    def _joined(self) -> int | None:
        """Any tool that an edge joins to the core, within the source."""
        own = self.tools[self.newest :]
        for _ in range(_TRIES):
            links = [k for k in self.graph.links[self.rng.choice(own)] if k.io_type.source]
            if links and (tool := self._of([self.rng.choice(links)])) is not None:
                return tool
        return self._of([k for tool in own for k in self.graph.links[tool] if k.io_type.source])

    def _of(self, links: list[DependencyLink]) -> int | None:
        """A tool at the other end of one of the links, None where all are taken."""
        self.rng.shuffle(links)
        for link in links:
            for tool in self._sample(link.others):
                if self.may_add(tool):
                    return tool
        return None

    def _sample(self, tools: Sequence[int]) -> Iterable[int]:
        """A few at random, then all: most are free to be taken."""
        for _ in range(_TRIES):
            yield self.rng.choice(tools)
        yield from self.rng.sample(tools, len(tools))
