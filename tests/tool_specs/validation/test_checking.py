"""The proof by execution: a sound domain passes, and each kind of flaw is named."""

import copy
from typing import Any

import pytest

from tests.tool_specs.conftest import BIKE_RENTAL
from tool_specs.domains.domain import Domain
from tool_specs.domains.loading import read_yaml
from tool_specs.validation.checking import check_domain
from tool_specs.validation.validate import Validation, validate_tools


def changed(tool: str, edit: Any) -> Domain:
    """The example domain with one tool's semantics edited in place."""
    data = copy.deepcopy(read_yaml(BIKE_RENTAL))
    spec = next(spec for spec in data["tools"] if spec["name"] == tool)
    edit(spec["semantics"])
    return Domain.of(data, origin="edited")


def test_the_example_domain_is_proved(bikes: Domain) -> None:
    report = check_domain(bikes)
    assert report.problems == []
    for tool in report.tools.values():
        assert tool.example is not None
        assert tool.read_only == (tool.writes == 0)
        assert tool.defects == []


def test_the_proof_is_deterministic(bikes: Domain) -> None:
    assert check_domain(bikes, seed=3) == check_domain(bikes, seed=3)


def always(semantics: list[Any]) -> None:
    semantics[1] = {"op": "require", "that": "false", "error": "closed", "message": "Closed."}


def never(semantics: list[Any]) -> None:
    semantics[1]["that"] = "rental.price >= 0"


def divides_by_zero(semantics: list[Any]) -> None:
    semantics[-2]["set"]["daily_price"] = "1 / (args.percent - args.percent)"


def stores_what_stood_there(semantics: list[Any]) -> None:
    semantics[-2]["set"]["daily_price"] = "each.daily_price + 0 * args.percent"


def answers_a_constant(semantics: list[Any]) -> None:
    semantics[-1]["value"] = {"total_on_page": 4}


def leaves_rentals_behind(semantics: list[Any]) -> None:
    del semantics[8]  # the loop over repairs keeps its body, which would delete them
    del semantics[7]


@pytest.mark.parametrize(
    ("tool", "edit", "words"),
    [
        ("return_bike", always, "tools[return_bike]: never succeeded in"),
        ("return_bike", never, "tools[return_bike]: semantics[1] not_open never happened in"),
        ("raise_prices", divides_by_zero, "by zero' on {"),
        ("raise_prices", stores_what_stood_there, "tools[raise_prices]: changed nothing in"),
        (
            "find_bikes",
            answers_a_constant,
            "tools[find_bikes]: its answer does not depend on the state",
        ),
        ("scrap_bike", leaves_rentals_behind, "still refers to bike"),
    ],
)
def test_a_flaw_is_named(tool: str, edit: Any, words: str) -> None:
    problems = check_domain(changed(tool, edit)).problems
    assert any(words in problem for problem in problems), problems


def test_a_tool_is_judged_alike_alone_and_beside_others(bikes: Domain) -> None:
    """What writing accepts, checking accepts: the same calls, seeds and states."""
    flawed = changed("return_bike", never)
    report = check_domain(flawed)
    for tool in flawed.tools:
        found = validate_tools(flawed.with_tools(()), [tool])[tool.name]
        assert found == Validation.of(report.tools[tool.name])


def empties_the_fleet(data: Any) -> None:
    """Two tools, each sound alone: one divides by what the other sets to zero."""
    data["entities"]["bike"]["fields"]["daily_price"] = {"type": "number", "min": 0, "unit": "EUR"}
    by_id = {"bike_id": {"type": "string", "ref": "bike"}}
    read = {"op": "read", "entity": "bike", "key": "args.bike_id", "as": "bike"}
    free = {"op": "update", "target": "bike", "set": {"daily_price": "0"}}
    days = "round(args.budget / bike.daily_price)"
    data["tools"] = [
        {
            "name": "give_away",
            "description": "Make a bike free. Returns its station.",
            "params": by_id,
            "semantics": [read, free, {"op": "return", "value": {"station": "bike.station"}}],
        },
        {
            "name": "count_days",
            "description": "How many days a budget lasts. Returns days.",
            "params": by_id | {"budget": {"type": "number", "min": 1, "max": 500}},
            "semantics": [read, {"op": "return", "value": {"days": days}}],
        },
    ]


def test_a_tool_that_breaks_down_in_a_state_that_another_makes_is_named() -> None:
    data = copy.deepcopy(read_yaml(BIKE_RENTAL))
    empties_the_fleet(data)
    data["policy"] = []
    domain = Domain.of(data, origin="edited")
    alone = validate_tools(domain.with_tools(()), domain.tools[1:])["count_days"]
    assert alone.reason is None, alone
    [problem, *_] = check_domain(domain).problems
    assert "tools[count_days]: fails with" in problem
    assert "by zero" in problem
