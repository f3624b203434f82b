"""Figures of believability, each on tools for which it is known."""

import json
from pathlib import Path

import pytest

from flows.cli.main import run
from records.errors import ConfigError
from synth.catalogue.writing.quality import compared, of_files, of_lists
from tool_specs.coverage.believability import REAL, CountedTool, figures, words_to_mask


def counted(place: str, name: str, **params: dict) -> CountedTool:
    needed = [n for n, spec in params.items() if spec.pop("needed", False)]
    schema = {"type": "object", "properties": params, "required": needed}
    return CountedTool(place, name, f"Does {name}.", schema, frozenset({"boat", "loan"}))


def test_words_of_the_domain_and_what_follows_a_preposition_are_no_idea() -> None:
    ideas = [
        counted("a", name).idea
        for name in ("list_overdue_boats_by_kind", "list_overdue_loans", "list_boat_loan", "boat")
    ]
    assert ideas == ["list_overdue_*", "list_overdue_*", "list_*", "boat"]


def test_shapes_are_counted_over_parameters_and_bare_tools_over_tools() -> None:
    found = figures(
        [
            counted("a", "list_boats"),
            counted(
                "a",
                "add_and_pay",
                boat={"type": "string", "needed": True},
                kind={"type": ["string", "null"], "enum": ["x", None], "default": "x"},
                limits={"type": ["object", "null"], "properties": {}},
                items={"type": "array", "items": {"type": "object"}, "needed": True},
            ),
        ]
    )
    assert found["without_params"] == found["optional_params"] == found["joined_names"] == 0.5
    shapes = ("enum_params", "default_params", "object_params", "object_list_params")
    assert [found[name] for name in shapes] == [0.25] * 4
    assert found["params"] == 2
    assert found["name_chars"] == 10.5


def test_an_idea_of_two_places_is_repeated_and_twins_have_no_distance() -> None:
    words = ("open", "close", "charge", "steer", "paint", "sell")
    tools = [counted(place, f"{word}_it") for place in ("a", "b") for word in words]
    found = figures([*tools, counted("b", "repair_now"), counted("b", "repair_now")])
    assert found["repeated_ideas"] == round(12 / 14, 4)
    assert found["across_near"] == round(12 / 14, 4)
    assert found["within_near"] == round(2 / 14, 4)


def test_of_real_lists_repeated_words_are_masked() -> None:
    assert words_to_mask("git_hub", ["list_issues", "close_issue", "merge_branch"]) == frozenset(
        {"git", "hub", "issue"}
    )


def test_the_table_of_files_beside_published_figures_and_beside_a_list(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = of_files(["clinic_desk", "box_office"])
    beside = {figure.name: figure for figure in compared(own, None)}
    assert beside["optional_params"].real == REAL["optional_params"]
    assert beside["places"][1:] == (2, None)
    tools = [{"name": "get_a", "description": "Get.", "inputSchema": {"type": "object"}}]
    (tmp_path / "real.json").write_text(json.dumps({"tools": tools}))
    assert [tool.name for tool in of_lists(tmp_path)] == ["get_a"]
    words = ["tools", "stats", "--quality", "--domains", "clinic_desk", "--real", str(tmp_path)]
    assert run([*words, "--json"]) == 0
    rows = {row["figure"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["without_params"]["real"] == 1
    with pytest.raises(ConfigError, match="no tool"):
        compared([], None)
