"""Toolset sampling: connected cores of declared sizes, distractors apart, the same by seed."""

import subprocess
import sys
from collections import Counter
from contextlib import suppress
from functools import cache
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from records.digest import digest
from records.errors import ConfigError
from records.seeds import rng_of
from records.tables.schemas import Row
from tests.examples import examples
from tests.tool_specs.toolsets.test_dependencies import builtin, mcp
from tool_specs.toolsets.dependencies import Graph
from tool_specs.toolsets.toolsets import Shape, Toolset, ToolsetSampler, sample_toolsets

THINGS = ("board", "card", "city", "invoice", "rocket", "session")


@st.composite
def catalogues(draw: st.DrawFn) -> list[Row]:
    """Servers with some of five tools about some of six things."""
    rows = []
    for server in range(draw(st.integers(1, 5))):
        for thing in draw(st.sets(st.sampled_from(THINGS), min_size=1)):
            other = draw(st.sampled_from(THINGS))
            own = [
                mcp(f"s{server}", f"list_{thing}s"),
                mcp(f"s{server}", f"get_{thing}_{other}", thing),
                mcp(f"s{server}", f"delete_{thing}", f"{thing}_id"),
                mcp(f"s{server}", f"move_{thing}", f"{thing}_id", other),
                mcp(f"s{server}", f"wipe_{thing}", "limit"),
            ]
            rows += draw(st.lists(st.sampled_from(own), unique_by=lambda row: row["name"]))
    return rows


@cache
def catalogue() -> Graph:
    verbs = (("list", ()), ("delete", ("{}_id",)), ("send", ("{}",)))
    servers = [
        mcp(f"s{i}", f"{verb}_{thing}", *(name.format(thing) for name in asked))
        for i in range(6)
        for thing in THINGS[i % 3 : i % 3 + 3]
        for verb, asked in verbs
    ]
    tools, domains = builtin()
    return Graph([*tools, *servers], domains)


def is_connected(toolset: Toolset) -> bool:
    reached, edges = {toolset.core[0]}, toolset.edges
    for _ in toolset.core:
        reached |= {e.giver for e in edges if e.taker in reached}
        reached |= {e.taker for e in edges if e.giver in reached}
    return reached == set(toolset.core)


def assert_kept(graph: Graph, shape: Shape, sets: list[Toolset]) -> None:
    at = {tool_id: i for i, tool_id in enumerate(graph.ids)}
    for found in sets:
        tools = [at[tool] for tool in (*found.core, *found.distractors)]
        assert len(found.core) == shape.core
        assert len(found.distractors) == shape.distractors
        assert len({graph.names[tool] for tool in tools}) == len(tools)
        assert is_connected(found)
        per_source = Counter(graph.sources[at[tool]] for tool in found.core)
        assert len(per_source) == shape.sources
        assert max(per_source.values()) - min(per_source.values()) <= 1
        for distractor in found.distractors:
            assert graph.sources[at[distractor]] not in per_source
            assert not any(graph.joined(at[distractor], at[tool]) for tool in found.core)
        for edge in found.edges:
            assert {edge.giver, edge.taker} <= set(found.core)
    assert len({frozenset(s.core + s.distractors) for s in sets}) == len(sets)


@settings(max_examples=examples(60), deadline=None)
@given(catalogues(), st.integers(1, 5), st.integers(1, 3), st.integers(0, 2), st.integers(0, 9))
def test_sets_of_any_catalogue_keep_what_their_shape_declares(
    rows: list[Row], core: int, sources: int, distractors: int, seed: int
) -> None:
    graph = Graph(rows)
    shape = Shape(core=max(core, sources), sources=sources, distractors=distractors)
    sets: list[Toolset] = []
    with suppress(ConfigError):  # too few tools for the shape
        sets = sample_toolsets(graph, shape, seed=seed, count=3)
    assert_kept(graph, shape, sets)


@pytest.mark.parametrize(
    "shape",
    [
        Shape(core=1, distractors=0),
        Shape(core=6, distractors=3),
        Shape(core=9, distractors=0),
        Shape(core=4, sources=2),
        Shape(core=7, sources=3, distractors=5),
    ],
    ids=str,
)
def test_sets_of_the_catalogue_keep_what_their_shape_declares(shape: Shape) -> None:
    sets = sample_toolsets(catalogue(), shape, seed=3, count=60)
    assert_kept(catalogue(), shape, sets)


def test_a_set_is_the_same_whatever_the_count_and_the_order_of_rows() -> None:
    tools, domains = builtin()
    shuffled = list(tools)
    Random(5).shuffle(shuffled)
    many = sample_toolsets(Graph(tools, domains), Shape(), seed=1, count=40)
    few = sample_toolsets(Graph(shuffled, domains[::-1]), Shape(), seed=1, count=15)
    assert many[:15] == few
    assert sample_toolsets(Graph(tools, domains), Shape(), seed=2, count=15) != few


@pytest.mark.slow
def test_another_process_with_another_hash_seed_draws_the_same() -> None:
    """Sets of Python have no order that is the same twice; nothing may hang on one."""
    code = (
        "from tests.tool_specs.toolsets.test_toolsets import *;"
        "print(digest(sample_toolsets(catalogue(), Shape(core=5, sources=2), seed=1, count=30)))"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": hash_seed},
            cwd=Path(__file__).parents[3],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    here = sample_toolsets(catalogue(), Shape(core=5, sources=2), seed=1, count=30)
    assert runs == {f"{digest(here)}\n"}


def test_what_a_tool_needs_is_in_the_core_where_anything_gives_it() -> None:
    """Far more often than in random tools of one domain: the point of sampling."""
    graph = catalogue()

    def met(tools: list[int]) -> float:
        needs = [p for t in tools for p in graph.io_types[t].needs if p.source]
        given = {p for t in tools for p in graph.io_types[t].gives}
        return sum(p in given for p in needs) / len(needs) if needs else 1.0

    at = {tool_id: i for i, tool_id in enumerate(graph.ids)}
    sets = sample_toolsets(graph, Shape(core=5, distractors=0), seed=1, count=100)
    rng = Random(0)
    sampled = [met([at[tool] for tool in s.core]) for s in sets]
    random = [met(rng.sample(graph.by_source[graph.sources[at[s.core[0]]]], 5)) for s in sets]
    assert sum(sampled) / 100 > 0.9
    assert sum(sampled) > sum(random) + 15


def test_a_core_within_a_source_is_never_short_where_names_differ() -> None:
    graph, sampler = catalogue(), ToolsetSampler(catalogue())
    for source, tools in graph.by_source.items():
        for size in (1, 3, len(tools)):
            found = sampler.within(rng_of(source, "test"), source, size)
            assert len(set(found)) == size
            assert {graph.sources[tool] for tool in found} == {source}


def test_too_small_a_catalogue_says_how_many_there_are() -> None:
    graph = Graph([mcp("s", "list_cards"), mcp("s", "send_card", "card_id")])
    shape = Shape(core=2, distractors=0)
    assert len(sample_toolsets(graph, shape, seed=0, count=1)) == 1
    with pytest.raises(ConfigError, match=r"2 tools gives 1 different toolsets.*not 2"):
        sample_toolsets(graph, shape, seed=0, count=2)
    with pytest.raises(ConfigError, match="core must be at least sources"):
        sample_toolsets(graph, Shape(core=1, sources=2), seed=0, count=1)
    with pytest.raises(ValidationError):
        Shape(core=0)
