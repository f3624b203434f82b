"""Every part of a tool is a place that is examined, whatever the grammar comes to hold."""

from typing import Any, get_args

import pytest

from tests.synth.catalogue.evolution.boats import BOATS
from tool_specs.domains.domain import (
    Domain,
    builtin_names,
    compile_tools,
    load_domain,
    load_domains,
)
from tool_specs.execution.programs import Entities, Problems
from tool_specs.language.domain_file import ToolSpec
from tool_specs.language.expressions import parse, show, walk
from tool_specs.language.statements import AnyStatement, Statement
from tool_specs.language.syntax.nodes import Node
from tool_specs.validation.mutation.compiling import compiled_place
from tool_specs.validation.mutation.exchanges import MAKERS
from tool_specs.validation.mutation.mutants import (
    STATEMENTS,
    MutantPlace,
    expressions_of,
    places_of,
)
from tool_specs.validation.mutation.trees import sites_of, with_node

BOAT = {"op": "read", "entity": "boat", "key": "args.boat_id", "as": "boat"}
PARAMS = {"boat_id": {"type": "string", "ref": "boat"}}


@pytest.fixture(scope="module")
def boats() -> Domain:
    return load_domain(BOATS)


def subclasses(kind: type) -> set[type]:
    return {kind} | {sub for own in kind.__subclasses__() for sub in subclasses(own)}


def spec_of(*semantics: dict[str, Any], **params: Any) -> ToolSpec:
    return ToolSpec.model_validate(
        {
            "name": "tried_out",
            "description": "A tool that is tried out here.",
            "params": PARAMS | params,
            "semantics": list(semantics),
        }
    )


def words_of(domain: Domain, *semantics: dict[str, Any], **params: Any) -> list[str]:
    return [place.words for place in places_of(spec_of(*semantics, **params), domain.file)]


def test_every_class_of_nodes_has_its_mutants() -> None:
    # by name: a dataclass with slots is made anew, and its first form stays a subclass
    names = {kind.__name__ for kind in subclasses(Node) - {Node}}
    assert names == {kind.__name__ for kind in MAKERS}


def test_every_class_of_statements_has_its_mutants() -> None:
    classes = set(get_args(get_args(AnyStatement)[0]))
    assert classes == set(STATEMENTS)
    assert classes == subclasses(Statement) - {Statement}


def test_a_class_without_mutants_is_an_error_and_no_gap(
    boats: Domain, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = spec_of(BOAT, {"op": "return", "value": {"name": "boat.name"}})
    [access] = [kind for kind in MAKERS if kind.__name__ == "Access"]
    monkeypatch.delitem(MAKERS, access)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="no mutants are made of Access"):
        list(places_of(spec, boats.file))


@pytest.mark.parametrize("name", builtin_names())
def test_every_node_can_be_replaced_where_it_stands(name: str) -> None:
    (domain,) = load_domains([name])
    marker = parse("marker")
    for tool in domain.tools:
        for statement in tool.semantics:
            for _, text in expressions_of(statement):
                tree = parse(text)
                sites = list(sites_of(tree))
                assert [site.node for site in sites] == list(walk(tree))
                for site in sites:
                    assert with_node(tree, site.path, site.node) == tree
                    changed = with_node(tree, site.path, marker)
                    assert marker in walk(changed)
                    assert parse(show(changed)) == changed


def test_all_expressions_of_a_statement_are_found(boats: Domain) -> None:
    statement = spec_of(
        BOAT,
        {"op": "return", "value": {"name": "boat.name", "more": {"seats": "boat.seats", "n": 3}}},
    ).semantics[1]
    assert list(expressions_of(statement)) == [
        (("value", "name"), "boat.name"),
        (("value", "more", "seats"), "boat.seats"),
        (("value", "more", "n"), "3"),
    ]


def test_writes_loops_and_pairs_are_places(boats: Domain) -> None:
    words = words_of(
        boats,
        BOAT,
        {"op": "read", "entity": "boat", "where": "boat.status == 'free'", "as": "boats"},
        {"op": "for_each", "over": "boats", "as": "each"},
        {"op": "update", "in": "each", "target": "each", "set": {"seats": "2"}},
        {"op": "update", "target": "boat", "set": {"seats": "args.seats"}},
        {"op": "return", "value": "boat.seats"},
        seats={"type": "integer"},
    )
    assert "without semantics[2] (for_each each)" in words
    assert "without semantics[3] (update each)" in words
    assert "without semantics[3] (update each) and semantics[4] (update boat) together" in words


def test_orders_limits_parameters_and_constants_are_places(boats: Domain) -> None:
    read = {"op": "read", "entity": "boat", "as": "boats", "order_by": ["-seats"], "limit": "3"}
    where = "boat.seats >= 2 and (args.berth_id == null or boat.berth_id == args.berth_id)"
    words = words_of(
        boats,
        read | {"where": where},
        {"op": "return", "value": {"boats": "boats"}},
        berth_id={"type": "string", "ref": "berth", "optional": True},
    )
    place = "semantics[0]"
    for expected in (
        f"{place}.order_by without '-seats'",
        f"{place}.order_by with 'seats'",
        f"{place} without its limit",
        f"{place}.limit with another constant in place of 3",
        f"{place}.where with another constant in place of 2",
        f"{place}.where with 'boat.seats > 2' in place of 'boat.seats >= 2'",
        f"{place}.where without 'boat.seats >= 2'",
        f"{place}.where without looking at 'args.berth_id'",
    ):
        assert expected in words


def test_where_one_mutant_does_not_compile_another_of_the_place_takes_over(boats: Domain) -> None:
    spec = spec_of(
        {"op": "read", "entity": "boat", "as": "boats"},
        {"op": "return", "value": {"n": "count(boats)", "seats": "sum(boats.seats)"}},
    ).model_copy(update={"params": {}})
    [program] = compile_tools([spec], entities := Entities.of(boats.file), Problems()).values()
    places = list(places_of(spec, boats.file))
    [read] = [place for place in places if place.words.startswith("without semantics[0]")]
    assert len(read.mutants) == 2
    assert compiled_place(program, read._replace(mutants=read.mutants[:1]), entities) is None
    assert all(compiled_place(program, place, entities) for place in places)


@pytest.mark.parametrize(
    ("that", "gone"),
    [
        ("boat.seats > 2 and boat.berth_id != null and boat.berth_id == 'BE-1001'", "!= null"),
        ("trip.returned_at != null and date(trip.returned_at) < date(now())", "!= null"),
        ("trip.returned_at == null or trip.returned_at != trip.starts_at", "== null"),
        ("date(trip.starts_at) < args.day", "date()"),
        ("date(args.day) == date(now())", "date() "),
        ("days_between(date(trip.starts_at), args.day) > 2", "date()"),
        ("round(boat.seats, 1) > 2", "round()"),
        ("round((boat.seats + 3) * 0.25 / 4, 4) > 2", "round()"),
        ("round(average([boat.hourly_rate]), 2) > 2", "round()"),
        ("args.day <= date(now())", "date()"),
        ("args.day <= coalesce(args.other, add_days(date(now()), 2))", "date()"),
        ("format(date(now()), '%d %B') == '02 March'", "date()"),
    ],
)
def test_what_is_proved_to_change_nothing_is_no_place(boats: Domain, that: str, gone: str) -> None:
    places = places_with(boats, that)
    terms = [p.words for p in places if " and " not in p.words and " or " not in p.words]
    assert not [words for words in terms if words.endswith(f"{gone}'") and "without" in words]
    assert f"semantics[2].that without {gone}" not in [p.words for p in places]


@pytest.mark.parametrize(
    ("that", "kept"),
    [
        ("trip.returned_at != null or trip.returned_at < now()", "'trip.returned_at != null'"),
        ("trip.returned_at != null and trip.hours > 2", "'trip.returned_at != null'"),
        ("trip.returned_at == null or trip.returned_at == trip.starts_at", "returned_at == null'"),
        ("date(trip.starts_at) <= args.day", "without date()"),
        ("round(boat.hourly_rate, 1) > 2", "without round()"),
        ("round(boat.seats / 3, 2) > 2", "without round()"),
        ("round(boat.seats / 4, 1) > 2", "without round()"),
        ("args.day >= date(now())", "without date()"),
        ("format(date(now()), '%H:%M') == '00:00'", "without date()"),
        ("format(now(), '%B') == 'March'", "40 days later"),
        ("boat.hourly_rate * 1000000 > 2", "in place of 1000000"),
        ("format(now(), '%H:%M') > '21:59'", "another constant in place of '21:59'"),
    ],
)
def test_what_is_not_proved_stays_a_place(boats: Domain, that: str, kept: str) -> None:
    assert any(kept in place.words for place in places_with(boats, that))


@pytest.mark.parametrize(
    ("that", "bound"),
    [
        ("sum([n - 3 for n in [boat.seats, 2] if n > 3]) > 1", "n >= 3"),
        ("sum([n for n in [boat.seats, 2] if n != 5 and n > 0]) > 1", "n >= 0"),
        (
            "if(trip.returned_at != null and date(trip.returned_at) > args.day, "
            "date(trip.returned_at), args.day) == args.day",
            "date(trip.returned_at) >= args.day",
        ),
    ],
)
def test_a_bound_where_nothing_is_taken_or_added_is_no_place(
    boats: Domain, that: str, bound: str
) -> None:
    assert not [p.words for p in places_with(boats, that) if f"with {bound!r}" in p.words]


def test_a_bound_of_a_count_and_of_another_sum_is_a_place(boats: Domain) -> None:
    for made in ("count([n for n in [boat.seats, 2] if n > 3])", "sum([n for n in [2] if n > 3])"):
        words = [place.words for place in places_with(boats, f"{made} > 1")]
        assert "semantics[2].that with 'n >= 3' in place of 'n > 3'" in words


def places_with(boats: Domain, that: str) -> list[MutantPlace]:
    spec = spec_of(
        BOAT,
        {"op": "read", "entity": "trip", "key": "args.trip_id", "as": "trip"},
        {"op": "require", "that": that, "error": "no", "message": "No."},
        {"op": "return", "value": {"boat": "boat"}},
        day={"type": "date"},
        other={"type": "date", "optional": True},
        trip_id={"type": "string", "ref": "trip"},
    )
    return list(places_of(spec, boats.file))
