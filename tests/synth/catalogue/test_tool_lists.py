"""Listing, counting and showing tools: filters mean what they say, and wrong ones say so."""

import io
from collections import Counter
from functools import cache
from typing import Any

import pytest
from rich.console import Console

from records.errors import ConfigError
from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.catalogue.tool_card import show_tools, tools_named
from synth.catalogue.tool_lists import Filters, list_tools, rows_where, tool_stats
from tests.synth.task_cases import domains
from tool_specs.domains.catalogue import domain_row, tool_rows
from tool_specs.importing.tool_lists import ToolListSource, rows_of_answer

HUGE = "x" * 5000


@cache
def rows() -> list[Row]:
    synthetic = [row for domain in domains() for row in tool_rows(domain)]
    listed = [
        {"name": "list_issues", "description": "List\x1b[31m issues.", "inputSchema": {}},
        {"name": "get_issue", "description": HUGE, "inputSchema": {"type": "object"}},
        {"name": "cancel_appointment", "description": "Cancel one.", "inputSchema": {}},
    ]
    source = ToolListSource(
        server="tracker", category="Development Tools", license="MIT", may_write=True
    )
    return [*synthetic, *rows_of_answer(listed, source)]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    store = Dataset.create_or_open(tmp_path_factory.mktemp("tools") / "data")
    tables = {"tools": rows(), "domains": list(map(domain_row, domains()))}
    store.commit(run_id="r", stage="import", shard=0, tables=tables, items={})
    return store


NAMES = {domain_row(domain)["domain_id"]: domain.name for domain in domains()}


def by_hand(**wanted: Any) -> set[str]:
    """Ids of the tools that pass, the slow way."""
    tests = {
        "domain": lambda t, v: NAMES.get(t["domain_id"]) == v,
        "drop_reason": lambda t, v: (
            t["drop_reason"] is None
            if v == "none"
            else t["drop_reason"] is not None
            if v == "any"
            else t["drop_reason"] == v
        ),
        "search": lambda t, v: v.lower() in f"{t['name']}\n{t['description']}".lower(),
        "operator": lambda t, v: t["evolve_op"] == v,
    }
    plain = lambda name: lambda t, v: t[name] == v  # noqa: E731
    return {
        tool["tool_id"]
        for tool in rows()
        if all(tests.get(name, plain(name))(tool, v) for name, v in wanted.items())
    }


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"source": "mcp"},
        {"category": "healthcare_medical"},
        {"domain": "clinic_desk", "search": "APPOINTMENT"},
        {"server": "tracker", "drop_reason": "none"},
        {"license": "MIT"},
        {"drop_reason": "any"},
        {"drop_reason": "huge_description"},
        {"operator": "imported"},
        {"search": "no such words"},
        {"source": "mcp", "domain": "clinic_desk"},
    ],
    ids=str,
)
def test_filters_keep_what_they_name(dataset: Dataset, wanted: dict[str, Any]) -> None:
    page = list_tools(dataset, Filters(**wanted, limit=None))
    expected = by_hand(**wanted)
    assert {row["tool_id"] for row in page.rows} == expected
    assert page.total == len(page.rows) == len(expected)


def test_pages_hold_each_tool_once(dataset: Dataset) -> None:
    pages = [list_tools(dataset, Filters(limit=17, offset=n)) for n in range(0, 200, 17)]
    ids = [row["tool_id"] for page in pages for row in page.rows]
    assert len(ids) == len(set(ids)) == len(rows())
    assert {page.total for page in pages} == {len(rows())}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"category": "healthcare"}, "category 'healthcare'; close to it: healthcare_medical"),
        ({"server": "trackr"}, "server 'trackr'; close to it: tracker"),
        ({"license": "zzz"}, "license 'zzz'; there are: Apache-2.0, MIT"),
        ({"drop_reason": "bad"}, "drop reason 'bad'"),
    ],
)
def test_a_value_that_no_tool_has_is_explained(
    dataset: Dataset, wrong: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        list_tools(dataset, Filters(**wrong))


def test_behaviour_is_read_off_the_annotations(dataset: Dataset) -> None:
    page = list_tools(dataset, Filters(domain="clinic_desk"))
    behaves = {row["name"]: row["behaves"] for row in page.rows}
    assert behaves["find_patients"] == "reads"
    assert behaves["cancel_appointment"] == "writes"
    assert behaves["add_allergy"] == "adds"
    [unknown] = {r["behaves"] for r in list_tools(dataset, Filters(source="mcp")).rows}
    assert unknown == "unknown"


def test_counts_add_up(dataset: Dataset) -> None:
    stats = tool_stats(dataset)
    by_source = Counter(row["source"] for row in rows())
    for row in stats["tools"]:
        assert row["tools"] == row["usable"] + row["dropped"] == by_source[row["source"]]
    usable = sum(row["usable"] for row in stats["tools"])
    for section, column in (("categories", "usable"), ("operators", "tools"), ("splits", "tools")):
        assert sum(row[column] for row in stats[section]) == usable
    dropped = Counter(row["drop_reason"] for row in rows() if row["drop_reason"])
    assert {row["drop_reason"]: row["tools"] for row in stats["dropped"]} == dropped
    assert dropped["huge_description"] == 1


def test_whole_rows_come_decoded(dataset: Dataset) -> None:
    found = rows_where(dataset, "tools", "server = ?", ["tracker"])
    expected = sorted((t for t in rows() if t["server"]), key=lambda t: t["tool_id"])
    assert [{name: row[name] for name in expected[0]} for row in found] == expected


def test_a_tool_is_shown_with_an_example_and_its_effect(dataset: Dataset) -> None:
    [tool] = tools_named(dataset, "cancel_appointment", domain="clinic_desk")
    assert tool["example"]["diff"]
    out = io.StringIO()
    show_tools(dataset, [tool], console=Console(file=out, width=200))
    text = out.getvalue()
    for words in ("fed by", "list_appointments (appointment)", "Apache-2.0", "not_booked",
                  "update appointment", "healthcare_medical"):  # fmt: skip
        assert words in text


def test_tools_that_share_a_name_are_all_found(dataset: Dataset) -> None:
    found = tools_named(dataset, "cancel_appointment")
    assert [tool["server"] or tool["domain"] for tool in found] == ["clinic_desk", "tracker"]
    assert tools_named(dataset, found[1]["tool_id"]) == found[1:]
    assert found[1]["example"] is None
    with pytest.raises(ConfigError, match="no tool of home_hub is called 'cancel_appointment'"):
        tools_named(dataset, "cancel_appointment", domain="home_hub")


def test_texts_of_strangers_reach_no_terminal_as_they_are(dataset: Dataset) -> None:
    out = io.StringIO()
    show_tools(dataset, tools_named(dataset, "list_issues"), console=Console(file=out, width=200))
    assert "\x1b" not in out.getvalue()
    assert "[U+001B]" in out.getvalue()
