"""Quotas on ideas, names and shapes: what is over one, and what counts."""

import pytest

from synth.catalogue.proposals.quotas import (
    CatalogueCounts,
    QuotaConfig,
    QuotaScreen,
    counts_of,
    used_up_ideas,
)
from tool_specs.coverage.believability import CountedTool
from tool_specs.language.domain_file import ToolSpec

MASKED = frozenset({"boat", "trip"})


def spec(name: str, *params: str) -> ToolSpec:
    """With enums of these names."""
    given = {p: {"type": "enum", "values": ["a", "b"], "description": "Which."} for p in params}
    returned = {"op": "return", "value": {"one": "1"}}
    return ToolSpec.model_validate(
        {
            "name": name,
            "description": "Does what its name says.",
            "params": given,
            "semantics": [returned],
        }
    )


def counted(place: str, name: str) -> CountedTool:
    return CountedTool(place, name, "", {}, MASKED)


def screen(*tools: CountedTool, domains: int = 4, **settings: float) -> QuotaScreen:
    config = QuotaConfig.model_validate(settings)
    return QuotaScreen(config, counts_of("hire", MASKED, tools, domains=domains, config=config))


def test_an_idea_is_written_so_often_in_a_domain_and_no_more() -> None:
    held = screen(counted("hire", "list_late_boats"))
    assert held.fault(spec("list_late_trips")) is None
    held.admit(spec("list_late_trips"))
    assert held.fault(spec("list_late_boats_by_kind")) == "idea_repeated"
    assert held.fault(spec("list_early_boats")) is None
    assert screen(counted("hire", "list_boats"), idea_in_domain=1).fault(spec("list_trips")) == (
        "idea_repeated"
    )


def test_an_idea_that_enough_other_domains_have_is_taken() -> None:
    tools = [counted(place, "find_boats") for place in ("a", "b", "c", "c")]
    assert screen(*tools[:2]).fault(spec("find_trips")) is None
    assert screen(*tools).fault(spec("find_trips")) == "idea_taken"
    assert screen(*tools, idea_domains=4).fault(spec("find_trips")) is None
    assert screen(*tools, domains=40).fault(spec("find_trips")) is None
    own = [*tools, counted("hire", "find_boats")]
    assert screen(*own).fault(spec("find_trips")) is None


def test_the_model_is_told_the_ideas_that_are_over_either_quota() -> None:
    config = QuotaConfig()
    tools = [counted(place, "find_boats") for place in "abc"]
    tools += [counted("hire", name) for name in ("close_boat", "close_trip", "open_boat")]
    counts = counts_of("hire", MASKED, tools, domains=4, config=config)
    assert used_up_ideas(counts, config) == ["close_*", "find_*"]


@pytest.mark.parametrize(
    "name", ["moor_{}_and_lock", "moor_boat_for_{}_a_very_long_while_in_the_rain"]
)
def test_joined_and_long_names_have_a_share_of_the_catalogue(name: str) -> None:
    few = CatalogueCounts(MASKED, {}, frozenset())
    held = QuotaScreen(QuotaConfig(idea_in_domain=9), few)
    for number in ("one", "two"):
        assert held.fault(spec(name.format(number))) is None
        held.admit(spec(name.format(number)))
    assert held.fault(spec(name.format("three"))) == "name_quota"
    assert held.fault(spec("moor")) is None
    many = QuotaScreen(QuotaConfig(), few._replace(tools=500, joined=2, long=2))
    assert many.fault(spec(name.format("three"))) is None


def test_enums_have_a_share_of_the_parameters() -> None:
    counts = CatalogueCounts(MASKED, {}, frozenset(), tools=50, params=100, enums=12)
    held = QuotaScreen(QuotaConfig(), counts)
    assert held.fault(spec("moor")) is None
    assert held.fault(spec("moor", "kind")) == "shape_quota"
    assert QuotaScreen(QuotaConfig(enum_share=0.5), counts).fault(spec("moor", "kind")) is None
