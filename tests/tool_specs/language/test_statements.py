"""One statement at a time, in a domain of two entities: what it does and how it fails."""

import re
from typing import Any

import pytest

from records.errors import ConfigError
from tool_specs.domains.domain import Domain
from tool_specs.domains.interpreter import CallResult, DomainEnvironment

DATA: dict[str, Any] = {
    "domain": "shelf",
    "title": "A shelf",
    "category": "smart_home",
    "description": "Boxes and the things in them.",
    "now": "2026-03-02T09:00:00",
    "entities": {
        "box": {
            "key": "code",
            "fields": {
                "code": {"type": "string"},
                "room": {"type": "integer", "min": 0, "max": 100},
                "opened": {"type": "date", "optional": True},
                "extra": {"type": "object", "optional": True},
            },
        },
        "thing": {
            "key": "thing_id",
            "prefix": "TH-",
            "fields": {
                "thing_id": {"type": "string"},
                "box": {"type": "ref", "to": "box", "optional": True},
                "size": {"type": "number"},
                "labels": {"type": "list", "max": 3},
                "near": {"type": "list", "of": "ref", "to": "thing"},
            },
        },
    },
    "seed": {
        "box": [
            {"code": "A", "room": 10, "opened": "2026-01-01"},
            {"code": "B", "room": 0},
            {"code": "C", "room": 5, "opened": "2025-01-01", "extra": {"deep": [1]}},
        ],
        "thing": [
            {"thing_id": f"TH-{n}", "box": "A", "size": n % 3, "labels": [], "near": []}
            for n in (8, 9, 10, 11)
        ],
    },
}
PARAMS: dict[str, Any] = {
    "n": {"type": "integer", "optional": True},
    "key": {"type": "string", "optional": True},
    "keys": {"type": "array", "items": {"type": "string"}, "optional": True},
    "object": {
        "type": "object",
        "optional": True,
        "properties": {
            "a": {"type": "integer", "optional": True, "default": 4},
            "b": {"type": "string", "optional": True},
        },
    },
}


def run(*statements: dict[str, Any], returns: Any = "null", **arguments: Any) -> CallResult:
    """One call of a tool with these statements, in a fresh environment; the hash is checked."""
    environment = DomainEnvironment.of(domain_with(*statements, returns=returns))
    result = environment.call("act", arguments)
    assert environment.state.total == environment.state.total_from_scratch()
    assert result.is_error or (result.hash_before != result.hash_after) == bool(result.diff)
    return result


def domain_with(*statements: dict[str, Any], returns: Any = "null") -> Domain:
    used = str(statements) + str(returns)
    tool = {
        "name": "act",
        "description": "Does what the test says.",
        "params": {
            name: spec for name, spec in PARAMS.items() if re.search(rf"args\.{name}\b", used)
        },
        "semantics": [*statements, {"op": "return", "value": returns}],
    }
    return Domain.of(DATA | {"tools": [tool]}, origin="test")


def error(result: CallResult) -> tuple[str | None, str]:
    assert result.is_error
    return result.error_code, result.observation["error"]["message"]


ALL_THINGS = {"op": "read", "entity": "thing", "as": "things"}
BOX = {"op": "read", "entity": "box", "key": "args.key", "as": "box"}


def test_rows_come_in_key_order_with_shorter_keys_first() -> None:
    assert run(ALL_THINGS, returns="things.thing_id").observation == [
        "TH-8",
        "TH-9",
        "TH-10",
        "TH-11",
    ]


@pytest.mark.parametrize(
    ("order", "codes"),
    [(["opened"], "CAB"), (["-opened"], "ACB"), (["-room"], "ACB"), (["room", "-code"], "BCA")],
)
def test_order_by_puts_nulls_last_and_ties_in_key_order(order: list[str], codes: str) -> None:
    read = {"op": "read", "entity": "box", "order_by": order, "as": "boxes"}
    assert run(read, returns="boxes.code").observation == list(codes)


def test_ties_keep_key_order_under_either_direction() -> None:
    read = ALL_THINGS | {"order_by": ["-size"]}
    assert run(read, returns="things.thing_id").observation == ["TH-8", "TH-11", "TH-10", "TH-9"]


@pytest.mark.parametrize(
    ("cursor", "limit", "found", "following"),
    [
        (None, "2", ["TH-8", "TH-9"], "2"),
        ("2", "2", ["TH-10", "TH-11"], None),
        ("4", "2", [], None),
        (None, "null", ["TH-8", "TH-9", "TH-10", "TH-11"], None),
    ],
)
def test_a_page_and_the_cursor_of_the_next(
    cursor: Any, limit: str, found: list[str], following: Any
) -> None:
    read = ALL_THINGS | {"limit": limit, "cursor": "args.key"}
    given = {} if cursor is None else {"key": cursor}
    answer = run(read, returns={"ids": "things.thing_id", "next": "things_next"}, **given)
    assert answer.observation == {"ids": found, "next": following}


@pytest.mark.parametrize("cursor", ["", "x", "-1", "1.5", "9" * 10, "\u0665"])
def test_a_made_up_cursor_is_an_invalid_argument(cursor: str) -> None:
    code, message = error(run(ALL_THINGS | {"cursor": "args.key"}, key=cursor))
    assert code == "invalid_arguments"
    assert message.startswith("cursor must be the one that the last page gave, got")


@pytest.mark.parametrize("limit", [0, -5])
def test_a_limit_below_one_is_an_invalid_argument(limit: int) -> None:
    code, message = error(run(ALL_THINGS | {"limit": "args.n"}, n=limit))
    assert (code, message) == ("invalid_arguments", f"limit must be at least 1, got {limit}")


def test_a_read_without_limit_gives_fifty_and_a_cursor() -> None:
    domain = domain_with(ALL_THINGS, returns={"n": "count(things)", "next": "things_next"})
    row = {"size": 1, "labels": [], "near": []}
    patch = {"thing": {f"TH-{n}": {"thing_id": f"TH-{n}", **row} for n in range(2000, 2060)}}
    assert DomainEnvironment.of(domain, patch).call("act", {}).observation == {
        "n": 50,
        "next": "50",
    }


def test_read_by_key_fails_with_the_declared_or_the_default_error() -> None:
    assert error(run(BOX, key="Z")) == ("not_found", "No box has the id 'Z'.")
    assert error(run(BOX))[0] == "not_found"  # a null key
    named = BOX | {"error": "no_box", "message": "Where is {args.key}?"}
    assert error(run(named, key="Z")) == ("no_box", "Where is Z?")


def test_where_may_reuse_the_name_of_a_bound_row() -> None:
    read = {"op": "read", "entity": "box", "where": "box.room > 4", "as": "roomy"}
    assert run(BOX, read, returns=["box.code", "count(roomy)"], key="B").observation == ["B", 2]


NEW_THING = {"op": "create", "entity": "thing", "as": "made"}
NEW_SET = {"size": 1, "labels": [], "near": []}


def test_create_numbers_from_the_state_and_fills_optional_fields_with_null() -> None:
    result = run(NEW_THING | {"set": NEW_SET}, returns="made")
    assert result.observation == NEW_SET | {"thing_id": "TH-1001", "box": None}
    assert list(result.observation) == ["thing_id", "box", "size", "labels", "near"]


def test_the_number_after_the_largest_is_free_again_once_its_row_is_gone() -> None:
    first, second = NEW_THING | {"set": NEW_SET}, NEW_THING | {"set": NEW_SET, "as": "other"}
    drop = {"op": "delete", "target": "made"}
    assert run(first, second, returns="other.thing_id").observation == "TH-1002"
    assert run(first, drop, second, returns="other.thing_id").observation == "TH-1001"


def test_create_with_a_given_key_refuses_one_that_exists() -> None:
    create = {"op": "create", "entity": "box", "set": {"code": "args.key", "room": 1}}
    assert run(create, key="D").diff[0]["id"] == "D"
    assert error(run(create, key="A")) == ("internal", "box 'A' exists already")


@pytest.mark.parametrize(
    ("field", "text", "message"),
    [
        ("size", "null", "thing.size: must be a number, got null"),
        ("size", "1 / 0", "thing.size: division of 1 by zero"),
        ("labels", "['a', 'b', 'c', 'd']", "thing.labels: must be a list of 0 to 3, got 4 items"),
        ("box", "'Z'", "No box has the id 'Z'."),
        ("near", "['TH-8', 'TH-0']", "No thing has the id 'TH-0'."),
    ],
)
def test_a_value_that_the_field_does_not_allow_undoes_the_call(
    field: str, text: str, message: str
) -> None:
    first = NEW_THING | {"set": NEW_SET}
    result = run(first, {"op": "create", "entity": "thing", "set": NEW_SET | {field: text}})
    assert error(result)[1] == message
    assert result.diff == []


def test_update_computes_all_values_from_the_row_as_it_was() -> None:
    update = {
        "op": "update",
        "target": "box",
        "set": {"room": "box.room + 1", "opened": "add_days('2026-01-01', box.room)"},
    }
    result = run(BOX, update, returns="box", key="A")
    assert result.observation["room"] == 11
    assert result.observation["opened"] == "2026-01-11"


def test_two_bindings_of_one_row_see_each_others_updates() -> None:
    other = {"op": "read", "entity": "box", "key": "'A'", "as": "same"}
    take = {"op": "update", "target": "box", "set": {"room": "box.room - 3"}}
    put = {"op": "update", "target": "same", "set": {"room": "same.room + 3"}}
    result = run(BOX, other, take, put, returns=["box.room", "same.room"], key="A")
    assert result.observation == [10, 10]
    assert result.diff == []  # moved from a box to itself: nothing changed


def test_bounds_of_a_field_hold_after_every_update() -> None:
    update = {"op": "update", "target": "box", "set": {"room": "box.room - args.n"}}
    code, message = error(run(BOX, update, key="A", n=11))
    assert code == "internal"
    assert message == "box.room: must be a whole number of at least 0 and at most 100, got -1"


def test_link_adds_once_and_unlink_takes_out() -> None:
    thing = {"op": "read", "entity": "thing", "key": "'TH-8'", "as": "thing"}
    link = {"op": "link", "target": "thing", "field": "labels", "to": "'x'"}
    unlink = link | {"op": "unlink"}
    assert run(thing, link, link, returns="thing.labels").observation == ["x"]
    assert run(thing, unlink, returns="thing.labels").diff == []
    assert run(thing, link, unlink, returns="thing.labels").diff == []
    near = {"op": "link", "target": "thing", "field": "near", "to": "args.key"}
    assert error(run(thing, near, key="TH-0")) == ("not_found", "No thing has the id 'TH-0'.")


def test_a_row_that_others_refer_to_cannot_go() -> None:
    delete = {"op": "delete", "target": "box"}
    assert run(BOX, delete, key="B").diff[0]["op"] == "delete"
    assert error(run(BOX, delete, key="A")) == (
        "internal",
        "thing 'TH-8' still refers to box 'A'",
    )


def test_order_of_deletes_within_a_call_is_free() -> None:
    loop = {"op": "for_each", "over": "things", "as": "each"}
    drop = {"op": "delete", "target": "each", "in": "each"}
    result = run(BOX, ALL_THINGS, {"op": "delete", "target": "box"}, loop, drop, key="A")
    assert len(result.diff) == 5


def test_a_deleted_row_stays_readable_but_takes_no_writes() -> None:
    delete = {"op": "delete", "target": "box"}
    assert run(BOX, delete, returns="box.code", key="B").observation == "B"
    update = {"op": "update", "target": "box", "set": {"room": 1}}
    for again in (delete, update):
        code, message = error(run(BOX, delete, again, key="B"))
        assert code == "internal"
        assert "was deleted by this call" in message


def test_for_each_binds_elements_and_gathers_what_its_body_binds() -> None:
    loop = {"op": "for_each", "over": "args.keys", "as": "id"}
    read = {"op": "read", "entity": "thing", "key": "id", "as": "thing", "in": "id"}
    grow = {"op": "update", "target": "thing", "set": {"size": "thing.size + 10"}, "in": "id"}
    result = run(loop, read, grow, returns="thing.size", keys=["TH-8", "TH-9", "TH-8"])
    assert result.observation == [22, 10, 22]  # rows, so both mentions of TH-8 show its last state
    assert [c["after"] for c in result.diff] == [{"size": 22}, {"size": 10}]


def test_for_each_over_nothing_does_nothing() -> None:
    loop = {"op": "for_each", "over": "args.keys", "as": "id"}
    create = NEW_THING | {"set": NEW_SET | {"labels": "[id]"}, "in": "id"}
    assert run(loop, create, returns="made", keys=[]).observation == []


def test_steps_of_a_call_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tool_specs.domains.interpreter.MAX_STEPS", 5)
    assert not run(ALL_THINGS).is_error
    again = ALL_THINGS | {"as": "again"}
    assert error(run(ALL_THINGS, again)) == ("internal", "more than 1000000 steps in one call")


def test_a_member_that_nothing_reads_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"tools\[act\]\.params\.object\.b: nothing in the sem"):
        domain_with(returns="args.object.a")
    domain_with(returns="args.object")


def test_objects_have_their_defaults_filled_in() -> None:
    assert run(returns=["args.object.a", "args.object.b"], object={}).observation == [4, None]
    assert run(returns=["args.object.a", "args.object.b"]).observation == [None, None]


def test_answers_and_arguments_cannot_reach_into_the_state() -> None:
    keep = {"op": "update", "target": "box", "set": {"extra": "args.object"}}
    environment = DomainEnvironment.of(domain_with(BOX, keep, returns="box"))
    nested = {"a": 1, "b": "x"}
    answer = environment.call("act", {"key": "A", "object": nested}).observation
    nested["a"] = answer["extra"]["a"] = 999
    answer["room"] = 999
    assert environment.get("box", "A") == {
        "code": "A",
        "room": 10,
        "opened": "2026-01-01",
        "extra": {"a": 1, "b": "x"},
    }
    assert environment.state.total == environment.state.total_from_scratch()


def test_a_row_kept_inside_a_row_cannot_grow_without_end() -> None:
    keep = {"op": "update", "target": "box", "set": {"extra": "box"}}
    environment = DomainEnvironment.of(domain_with(BOX, keep))
    results = [environment.call("act", {"key": "A"}) for _ in range(20)]
    assert error(results[-1]) == ("internal", "box.extra: nested deeper than 12 levels")
