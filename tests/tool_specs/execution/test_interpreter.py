"""Calls: what each statement does, that failures change nothing, and what the agent is told."""

import json
from random import Random
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from records.errors import ConfigError
from tests.examples import examples
from tool_specs.domains.domain import Domain, compile_tools
from tool_specs.domains.interpreter import CallResult, DomainEnvironment, policy_violations
from tool_specs.execution import statements as execution
from tool_specs.execution.programs import Entities, Problems
from tool_specs.execution.state import EntityRow, State
from tool_specs.language.domain_file import ToolSpec
from tool_specs.validation.drawing import draw_arguments


def ok(environment: DomainEnvironment, tool: str, **arguments: Any) -> CallResult:
    result = environment.call(tool, arguments)
    assert not result.is_error, result.observation
    return result


def failed(environment: DomainEnvironment, tool: str, **arguments: Any) -> tuple[str, str]:
    """Code and message of a call that must fail and leave the state alone."""
    before = environment.state_hash
    result = environment.call(tool, arguments)
    assert result.is_error
    assert result.diff == []
    assert result.hash_before == result.hash_after == environment.state_hash == before
    assert environment.state.total == environment.state.total_from_scratch()
    assert result.error_code == result.observation["error"]["code"]
    return result.observation["error"]["code"], result.observation["error"]["message"]


RENT = {"customer_id": "CU-1001", "bike_id": "BK-1002", "ends_on": "2026-05-05"}


def test_a_write_shows_in_answer_diff_hash_and_later_reads(environment: DomainEnvironment) -> None:
    result = ok(environment, "start_rental", **RENT, extras=[{"item": "helmet", "amount": 1}])
    assert result.observation == {"rental_id": "RE-1003", "price": 65, "credit": 55}
    assert [(c["op"], c["entity"], c["id"]) for c in result.diff] == [
        ("create", "rental", "RE-1003"),
        ("update", "customer", "CU-1001"),
        ("update", "bike", "BK-1002"),
    ]
    assert result.diff[1]["before"] == {"credit": 120}
    assert result.diff[1]["after"] == {"credit": 55}
    assert result.hash_before != result.hash_after == environment.state_hash
    assert failed(environment, "start_rental", **RENT) == (
        "already_rented",
        "Bike BK-1002 is out until 2026-05-05.",
    )


def test_reads_change_nothing(environment: DomainEnvironment) -> None:
    result = ok(environment, "find_bikes")
    assert result.diff == []
    assert result.hash_before == result.hash_after


def test_a_batch_that_fails_in_the_middle_changes_nothing(environment: DomainEnvironment) -> None:
    code, message = failed(environment, "report_damage", bikes=["BK-1001", "BK-1005"], note="flat")
    assert (code, message) == ("in_workshop", "Bike BK-1005 is in the workshop already.")


def test_what_a_loop_binds_is_a_list_afterwards(environment: DomainEnvironment) -> None:
    result = ok(environment, "report_damage", bikes=["BK-1001", "BK-1002"], note="flat")
    assert result.observation["repair_ids"] == ["RP-1002", "RP-1003"]


def test_a_binding_follows_updates_of_its_row(environment: DomainEnvironment) -> None:
    assert ok(environment, "raise_prices", station="PIER", percent=10).observation == {
        "station": "Old Pier",
        "prices": [15.4, 35.75],
    }


def test_delete_takes_dependants_first_and_a_dangling_reference_is_refused(
    environment: DomainEnvironment,
) -> None:
    result = ok(environment, "scrap_bike", bike_id="BK-1005")
    assert [(c["op"], c["id"]) for c in result.diff] == [
        ("delete", "RP-1001"),
        ("delete", "BK-1005"),
    ]
    assert environment.get("bike", "BK-1005") is None


def test_breaches_are_told_before_the_call_is_made(environment: DomainEnvironment) -> None:
    poor = {**RENT, "customer_id": "CU-1002"}
    assert policy_violations(environment, "start_rental", poor) == ["no_cargo_on_credit"]
    assert policy_violations(environment, "start_rental", RENT) == []
    assert policy_violations(environment, "scrap_bike", {"bike_id": "BK-1004"}) == ["never_scrap"]
    assert policy_violations(environment, "scrap_bike", {"bike": 4}) == []


def test_a_patch_changes_the_seed_of_one_world(bikes: Domain) -> None:
    row = {"repair_id": "RP-7000", "bike": "BK-1001", "note": "x", "reported_at": bikes.now}
    environment = DomainEnvironment.of(bikes, {"repair": {"RP-7000": row, "RP-1001": None}})
    assert [r["repair_id"] for r in environment.rows("repair")] == ["RP-7000"]
    assert DomainEnvironment.of(bikes).rows("repair") == bikes.seed["repair"]
    assert ok(environment, "report_damage", bikes=["BK-1002"], note="flat").observation[
        "repair_ids"
    ] == ["RP-7001"]


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        ({"boat": {}}, "initial_state.boat: unknown entity; known: station, bike"),
        ({"bike": {"BK-1": {"bike_id": "BK-2"}}}, "initial_state.bike[BK-1]: kind must be one of"),
        (
            {"bike": {"BK-1005": None}},
            "initial_state: repair 'RP-1001' still refers to bike 'BK-1005'",
        ),
    ],
)
def test_a_patch_that_does_not_fit_is_refused(bikes: Domain, patch: Any, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        DomainEnvironment.of(bikes, patch)
    assert words in str(caught.value)


def scrambled(rng: Random, arguments: Any) -> Any:
    """Now and then a wrong type, a missing or an unknown field, an odd value."""
    if not isinstance(arguments, dict) or rng.random() < 0.7:
        return arguments
    changed = dict(arguments)
    name = rng.choice([*changed, "unknown"])
    if rng.random() < 0.3:
        changed.pop(name, None)
    else:
        changed[name] = rng.choice(["BK-1001", "CU-1002", "", 0, -1, None, [], {}, "2026-02-30"])
    return changed


def walk(environment: DomainEnvironment, seed: int, num_calls: int) -> list[CallResult]:
    rng = Random(seed)
    names = [tool.name for tool in environment.domain.tools]
    results = []
    for _ in range(num_calls):
        name = rng.choice(names)
        arguments = scrambled(rng, draw_arguments(environment, name, rng))
        results.append(environment.call(name, arguments))
    return results


@settings(max_examples=examples(40))
@given(seed=st.integers(0, 2**32))
def test_after_any_calls_the_state_is_whole(bikes: Domain, seed: int) -> None:
    """The hash is that of the rows, diffs lead from one to the next, answers fit their schema."""
    environment = DomainEnvironment.of(bikes)
    last = environment.state_hash
    for result in walk(environment, seed, 12):
        assert result.hash_before == last
        assert result.is_error == (result.error_code is not None)
        assert result.error_code != "internal", result.observation
        assert bool(result.diff) == (result.hash_before != result.hash_after)
        json.dumps(result.observation)
        last = result.hash_after
    rows = {
        name: {r[e.key]: r for r in environment.rows(name)} for name, e in bikes.entities.items()
    }
    assert environment.state_hash == last == State.of(rows).hash
    DomainEnvironment.of(bikes, rows)  # every row and reference still fits its entity


@settings(max_examples=examples(25))
@given(seed=st.integers(0, 2**32))
def test_snapshots_are_isolated_and_calls_replay(bikes: Domain, seed: int) -> None:
    environment = DomainEnvironment.of(bikes)
    walk(environment, seed, 5)
    kept, before = environment.snapshot(), environment.state_hash
    first = walk(environment, seed + 1, 8)
    assert kept.state_hash == before
    assert kept.state.total == kept.state.total_from_scratch()
    assert walk(kept, seed + 1, 8) == first
    assert kept.state_hash == environment.state_hash


def all_rows(env: Any, read: execution.PageRead) -> list[EntityRow]:
    """What a read may look at, without any index."""
    rows = list(env[1].tables[read.entity].rows())
    for field, descending in reversed(read.order):
        present = [row for row in rows if row[field] is not None]
        absent = [row for row in rows if row[field] is None]
        rows = sorted(present, key=lambda row: row[field], reverse=descending) + absent
    return rows


@settings(max_examples=examples(40))
@given(seed=st.integers(0, 2**32))
def test_an_index_changes_the_cost_and_never_the_answer(bikes: Domain, seed: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        indexed = walk(DomainEnvironment.of(bikes), seed, 10)
        patch.setattr(execution, "candidates", all_rows)
        assert walk(DomainEnvironment.of(bikes), seed, 10) == indexed


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
def test_pages_visit_each_row_once(bikes: Domain, limit: int) -> None:
    row = bikes.seed["bike"][0]
    more = {
        f"BK-{n}": row | {"bike_id": f"BK-{n}", "daily_price": n % 3} for n in range(2000, 2010)
    }
    environment = DomainEnvironment.of(bikes, {"bike": more})
    seen, cursor = [], {}
    while True:
        page = ok(environment, "find_bikes", limit=limit, **cursor).observation
        assert len(page["bikes"]) <= limit
        seen += [bike["bike_id"] for bike in page["bikes"]]
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
    whole = ok(environment, "find_bikes", limit=20).observation["bikes"]
    assert seen == [bike["bike_id"] for bike in whole]
    assert len(set(seen)) == len(seen) == 14


def nested(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "arguments",
    [
        None,
        [],
        "customer_id",
        3,
        {"customer_id": {"$ref": "#"}},
        {"unknown": 1},
        {1: 2},
        {"customer_id": nested(5000)},
        {"limit": 10**400},
        {"limit": float("nan")},
        {"limit": True},
        {"cursor": "9" * 5000},
        {"cursor": None},
        {"name": "\ud800"},
        {"name": "x" * 300_000},
        {"bikes": ["BK-1001"] * 10_000, "note": "aaa"},
        {"extras": {"item": 1}},
        {"kind": object()},
        {"name": b"bytes"},
        {"ends_on": "2026-13-45", "customer_id": "CU-1001", "bike_id": "BK-1001"},
        {"when": "2026-02-30T00:00:00", "rental_id": "RE-1001", "station": "PIER"},
    ],
)
def test_hostile_arguments_are_answered_and_never_raise(
    environment: DomainEnvironment, arguments: Any
) -> None:
    for tool in environment.domain.tools:
        result = environment.call(tool.name, arguments)
        assert result.is_error
        assert result.error_code == "invalid_arguments"
        assert 0 < len(result.observation["error"]["message"]) <= 1000
    assert environment.state_hash == DomainEnvironment.of(environment.domain).state_hash


any_json = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.data())
def test_whatever_is_sent_is_answered(bikes: Domain, data: Any) -> None:
    environment = DomainEnvironment.of(bikes)
    tool = data.draw(st.sampled_from([*bikes.programs, "no_such_tool", "", 3, None]))
    names = list(bikes.programs[tool].spec.params) if tool in bikes.programs else ["a"]
    known = st.dictionaries(st.sampled_from(names), any_json, max_size=4)
    result = environment.call(tool, data.draw(st.one_of(any_json, known)))
    json.dumps(result.observation, allow_nan=False)
    assert result.error_code != "internal"


def test_an_unknown_tool_is_told_what_there_is(environment: DomainEnvironment) -> None:
    code, message = failed(environment, "rent_bike")
    assert code == "invalid_arguments"
    assert message.startswith("There is no tool 'rent_bike'. Tools: find_bikes, get_customer,")


def test_a_message_names_the_field_and_what_is_allowed(environment: DomainEnvironment) -> None:
    assert failed(environment, "find_bikes", kind="boat", limit=99) == (
        "invalid_arguments",
        'kind: "boat" is not one of "city", "cargo" or "electric" (Kind of bike); '
        "limit: 99 is greater than the maximum of 20 (Bikes on a page).",
    )
    assert failed(environment, "return_bike", rental_id="RE-1001", station="PIER", when="noon")[
        1
    ] == (
        'when: "noon" does not match "^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}$" '
        "(When it came back, if not now, such as 2026-05-04T08:00:00)."
    )


def test_openai_tools_are_valid_and_can_be_chosen(bikes: Domain) -> None:
    tools = bikes.openai_tools()
    assert [tool["function"]["name"] for tool in tools] == [tool.name for tool in bikes.tools]
    for tool in tools:
        assert tool["type"] == "function"
        jsonschema.Draft202012Validator.check_schema(tool["function"]["parameters"])
    chosen = bikes.openai_tools(["scrap_bike", "find_bikes"])
    assert [tool["function"]["name"] for tool in chosen] == ["scrap_bike", "find_bikes"]
    prices = tools[0]["function"]["parameters"]["properties"]["max_price"]
    assert prices == {
        "type": "number",
        "minimum": 0,
        "description": "Highest price of a day. Unit: EUR.",
    }


def test_equal_states_answer_equally_whatever_led_to_them(bikes: Domain) -> None:
    """Deleting what was created gives the old hash, the old order and the old next id."""
    environment = DomainEnvironment.of(bikes)
    for name in ("CU-1001", "CU-1003"):
        ok(environment, "set_favourite", customer_id=name, add="BK-1002")
        ok(environment, "set_favourite", customer_id=name, add="BK-1003", remove="BK-1002")
    ok(environment, "set_favourite", customer_id="CU-1003", add="BK-1005", remove="BK-1003")
    fresh = DomainEnvironment.of(
        bikes, {"customer": {r["customer_id"]: r for r in environment.rows("customer")}}
    )
    assert fresh.state_hash == environment.state_hash
    assert walk(fresh, 5, 10) == walk(environment, 5, 10)


@pytest.mark.parametrize(
    ("be", "words"),
    [
        ("round(2.345, args.n)", "round takes 0 to 9 digits"),
        ("add_days(date(now()), args.n * 1000000)", "add_days leaves the calendar"),
        ("add_minutes(now(), args.n * 1000000000)", "add_minutes leaves the calendar"),
        ("split('a b', args.by)", "split needs a text of at least one character"),
        ("replace('a b', args.by, 'x')", "replace needs a text of at least one character"),
        ("part('a b', ' ', args.n - 12)", "part counts from 1"),
    ],
)
def test_an_argument_beyond_what_a_function_takes_is_told_as_the_caller_s(
    bikes: Domain, be: str, words: str
) -> None:
    spec = {
        "name": "reckon",
        "description": "Reckon with what is given. Returns found.",
        "params": {
            "n": {"type": "integer", "description": "A number."},
            "by": {"type": "string", "description": "A text."},
        },
        "semantics": [{"op": "return", "value": {"found": be, "n": "args.n", "by": "args.by"}}],
    }
    problems = Problems()
    tool = ToolSpec.model_validate(spec)
    programs = compile_tools([tool], Entities.of(bikes.file), problems)
    environment = DomainEnvironment.of(bikes.with_tools(programs.values()))
    assert problems.found == []
    code, message = failed(environment, "reckon", n=12, by="")
    assert code == "invalid_arguments"
    assert words in message
