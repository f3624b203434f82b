"""Coverage: counts add up, overlap against a slow reference, a map that is the same by seed."""

import xml.etree.ElementTree as ET
from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pytest

from records.tables.schemas import Row
from tests.tool_specs.toolsets.test_dependencies import builtin, mcp
from tool_specs.coverage import coverage
from tool_specs.coverage.coverage import MapPoint, categories, cells, overlaps, points, text_of
from tool_specs.coverage.coverage_map import map_svg
from tool_specs.toolsets.io_types import source_of

WORDS = ("invoice", "parcel", "robot", "meeting", "sensor", "ticket", "forecast", "patient")


def servers(count: int) -> list[Row]:
    """Tools of made-up servers, some of which speak of what the built-in domains do."""
    rng, rows = Random(4), []
    for i in range(count):
        name = f"{rng.choice(['list', 'get', 'send'])}_{rng.choice(WORDS)}_{rng.choice(WORDS)}"
        row = mcp(f"s{i % 7}", f"{name}_x{'y' * i}")
        described = " ".join(rng.choices(WORDS, k=4))
        rows.append({**row, "source": "mcp", "description": f"{name} with {described}."})
    return rows


def catalogue() -> tuple[list[Row], tuple[Row, ...]]:
    tools, domains = builtin()
    return [*tools, *servers(40)], domains


def test_cells_count_usable_tools_and_keep_what_is_empty() -> None:
    tools, domains = catalogue()
    dropped = {**tools[0], "drop_reason": "huge_schema"}
    empty = {**domains[0], "domain_id": "none", "name": "bare", "category": "smart_home"}
    found = cells([dropped, *tools[1:]], [*domains, empty])
    assert sum(cell.tools for cell in found) == len(tools) - 1
    assert ("synthetic", "smart_home", "bare", 0) in found
    by_category = categories(found)
    assert sum(row.tools for row in by_category) == len(tools) - 1
    [home] = [row for row in by_category if row.category == "smart_home"]
    assert (home.places, home.empty) == (2, 1)
    assert home.least == home.most == home.tools
    real = [row for row in by_category if row.source == "mcp"]
    assert [(row.places, row.tools) for row in real] == [(7, 40)]


def test_overlap_is_that_of_all_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coverage, "_BLOCK", 9)  # several blocks, and one that is not full
    tools, _ = catalogue()
    rows = sorted(tools, key=lambda tool: tool["tool_id"])
    vectors = coverage.vectors_of(rows).toarray()
    for found in overlaps(tools):
        distances = []
        for i, a in enumerate(rows):
            others = [
                float(vectors[i] @ vectors[j])
                for j, b in enumerate(rows)
                if b["source"] == found.to and source_of(a) != source_of(b)
            ]
            if a["source"] == found.of:
                distances.append(1 - max(others))
        assert found.tools == len(distances)
        assert found.median == pytest.approx(np.median(distances), abs=1e-3)
        for limit, share in found.within.items():
            near = sum(d <= float(limit) + 1e-6 for d in distances) / len(distances)
            assert share == pytest.approx(near, abs=1e-3)


def test_a_copy_in_another_source_is_at_no_distance() -> None:
    tools, _ = builtin()
    copies = [
        {**t, "tool_id": f"copy-{t['tool_id']}", "source": "mcp", "domain_id": None, "server": "s"}
        for t in tools[:30]
    ]
    found = {(o.of, o.to): o for o in overlaps([*tools, *copies])}
    assert found["mcp", "synthetic"].within["0.3"] == 1.0
    assert found["mcp", "synthetic"].median == pytest.approx(0.0, abs=1e-6)
    assert found["synthetic", "mcp"].within["0.3"] < 0.5
    assert ("mcp", "mcp") not in found  # one server has no neighbour


@pytest.mark.slow
def test_order_changes_nothing_and_the_seed_the_map_alone() -> None:
    tools, _ = catalogue()
    shuffled = list(tools)
    Random(1).shuffle(shuffled)
    assert overlaps(shuffled) == overlaps(tools)
    drawn = points(tools, seed=1)
    assert points(shuffled, seed=1) == drawn
    assert points(tools, seed=2) != drawn
    assert Counter(p.source for p in drawn) == Counter(t["source"] for t in tools)
    assert {0.0, 1.0} <= {p.x for p in drawn}


def test_a_large_catalogue_is_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coverage, "MOST_POINTS", 50)
    tools, _ = catalogue()
    assert len(points(tools)) == 50


def test_near_points_are_alike() -> None:
    """Of the nearest neighbours on the map, far more are of the same domain than by chance."""
    tools, domains = builtin()
    drawn = points(tools)
    names = {d["category"] for d in domains}
    places = np.array([(p.x, p.y) for p in drawn])
    distances = ((places[:, None] - places[None]) ** 2).sum(axis=2)
    np.fill_diagonal(distances, np.inf)
    same = sum(drawn[i].category == drawn[j].category for i, j in enumerate(distances.argmin(1)))
    assert same / len(drawn) > 4 / len(names)


def test_too_few_tools_are_not_compared() -> None:
    tools, _ = builtin()
    assert overlaps(tools[:5]) == []
    assert points(tools[:5]) == []


@pytest.mark.parametrize("schema", [None, [], {"properties": 3}])
def test_odd_schemas_have_words_all_the_same(schema: Any) -> None:
    row = {**mcp("s", "getThing"), "input_schema": schema}
    assert text_of(row) == "get thing get thing getThing."


def test_the_map_is_one_svg_without_anything_foreign() -> None:
    hostile = '"><script>alert(1)</script>\u202e&'
    spots = [MapPoint(i / 9, (i % 3) / 2, "mcp", hostile) for i in range(10)]
    spots += [MapPoint(0.5, 0.5, "synthetic", "smart_home")] * 3
    svg = map_svg(spots, totals={"mcp": 12_345, "synthetic": 3})
    root = ET.fromstring(svg)
    tags = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert tags <= {"svg", "rect", "path", "text", "circle"}
    assert "href" not in svg
    assert "\u202e" not in svg
    texts = "".join(element.text or "" for element in root.iter())
    assert "smart home" in texts
    assert "12,345, 10 drawn" in texts
    assert svg.count("h0") == len(spots)
