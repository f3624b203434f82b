"""Validators against the `jsonschema` package, and what is refused before it can cost anything."""

import json
import socket
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tool_specs.domains.domain import Domain
from tool_specs.execution.fields import clean_json
from tool_specs.language.schemas import SchemaError, Validator
from tool_specs.language.values import EvaluationError

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.floats(-3, 3).map(lambda x: round(x, 1)),
    st.text("ab1", max_size=3),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3),
    ),
    max_leaves=6,
)


def composed(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.fixed_dictionaries(
            {"type": st.just("object")},
            optional={
                "properties": st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2),
                "required": st.lists(st.sampled_from(["a", "b"]), unique=True),
                "additionalProperties": st.one_of(st.booleans(), inner),
                "maxProperties": st.integers(0, 2),
            },
        ),
        st.fixed_dictionaries(
            {"type": st.just("array"), "items": inner},
            optional={"minItems": st.integers(0, 2), "uniqueItems": st.booleans()},
        ),
        st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"oneOf": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"allOf": st.lists(inner, min_size=1, max_size=2), "not": inner}),
    )


schemas = st.recursive(
    st.one_of(
        st.fixed_dictionaries(
            {"type": st.sampled_from(["integer", "number"])},
            optional={"minimum": st.integers(-2, 2), "exclusiveMaximum": st.integers(-2, 2)},
        ),
        st.fixed_dictionaries(
            {"type": st.one_of(st.just("string"), st.just(["string", "null"]))},
            optional={
                "maxLength": st.integers(0, 3),
                "pattern": st.sampled_from(["^a", "b$", r"\d"]),
            },
        ),
        st.fixed_dictionaries({"enum": st.lists(scalars, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"const": scalars}),
        st.just({"type": "boolean"}),
        st.booleans(),
    ),
    composed,
    max_leaves=6,
)


@given(schemas, values)
def test_agrees_with_jsonschema_on_any_schema(schema: Any, value: Any) -> None:
    validator = Validator(schema)
    expected = jsonschema.Draft202012Validator(schema).is_valid(value)
    assert validator.is_valid(value) == expected
    assert (validator.problems(value) == []) == expected


@given(st.data())
def test_agrees_with_jsonschema_on_the_schemas_of_tools(bikes: Domain, data: Any) -> None:
    """Arguments that nearly fit: the right names, with right and wrong values."""
    program = data.draw(st.sampled_from(list(bikes.programs.values())))
    schema = program.spec.input_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator.check_schema(program.output_schema)
    names = st.sampled_from([*schema["properties"], "other"])
    given_value = st.one_of(
        values, st.sampled_from(["BK-1001", "city", "2026-05-05", 5, ["BK-1001"]])
    )
    arguments = data.draw(st.dictionaries(names, given_value, max_size=4))
    expected = jsonschema.Draft202012Validator(schema).is_valid(arguments)
    assert program.validator.is_valid(arguments) == expected


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({}, "station is missing (string: Code of the station, such as PIER)"),
        ({"station": 3, "percent": 1}, 'station: 3 is not of type "string" (Code of the station'),
        (
            {"station": "PIER", "percent": 99},
            "percent: 99 is greater than the maximum of 50 (Percent",
        ),
        (
            {"station": "PIER", "percent": 1, "x": 1},
            "x: no such parameter; allowed: station, percent",
        ),
        ([], 'arguments: [] is not of type "object"'),
        ({"station": "P" * 9999, "percent": 1}, '"PPP'),
    ],
)
def test_problems_say_where_what_and_what_is_allowed(
    bikes: Domain, value: Any, problem: str
) -> None:
    found = bikes.programs["raise_prices"].validator.problems(value)
    assert problem in found[0]
    assert all(len(words) < 600 for words in found)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"$ref": "http://127.0.0.1:9/schema"}, "points outside the schema"),
        ({"properties": {"a": {"$ref": "file:///etc/passwd"}}}, "points outside the schema"),
        ({"$ref": "#"}, "is recursive"),
        ({"$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}, "$ref": "#/$defs/a"}, "is recursive"),
        ({"$ref": "#/$defs/missing"}, "points at nothing"),
        ({"$dynamicRef": "#a"}, "$dynamicRef is not supported"),
        ({"items": {"$id": "http://x.example", "type": "string"}}, "$id below the top"),
        ({"pattern": r"(a+)+\1$"}, 'is not a "regex"'),
        ({"pattern": "(a{1000}){1000}"}, 'is not a "regex"'),
        ({"type": "anything"}, "anything"),
        ({"minimum": 10**400}, "number out of range"),
        ({"maximum": float("nan")}, "number out of range"),
        ({1: "type"}, "names must be text, got 1"),
        ([], "a schema is an object or a boolean"),
        ({"enum": list(range(10_000))}, "over 40 levels or 10000 values"),
    ],
)
def test_a_schema_that_could_cost_or_fetch_is_refused(schema: Any, words: str) -> None:
    with pytest.raises(SchemaError) as caught:
        Validator(schema)
    assert words in str(caught.value)


def test_references_that_multiply_are_refused_in_linear_time() -> None:
    levels = {f"a{i}": {"anyOf": [{"$ref": f"#/$defs/a{i + 1}"}] * 4} for i in range(30)}
    schema = {"$defs": levels | {"a30": {"type": "string"}}, "$ref": "#/$defs/a0"}
    with pytest.raises(SchemaError, match="once references are expanded"):
        Validator(schema)


def test_depth_cannot_exhaust_the_stack() -> None:
    schema: Any = {}
    for _ in range(50_000):
        schema = {"items": schema}
    with pytest.raises(SchemaError, match="over 40 levels"):
        Validator(schema)
    while schema:  # a deep dict is freed by recursion, too
        schema = schema.pop("items")


def test_nothing_is_ever_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("opened a connection"))
    schema = {"$schema": "https://nowhere.example/schema", "$id": "https://nowhere.example/a"}
    assert Validator(schema | {"type": "string"}).is_valid("x")


def test_a_pattern_that_backtracks_elsewhere_is_linear_here() -> None:
    """Against Python's re this takes longer than anybody waits; no clock is asserted."""
    assert not Validator({"pattern": "^(a+)+$"}).is_valid("a" * 100_000 + "b")


def test_words_for_a_large_failure_are_bounded() -> None:
    branches = [{"type": "array", "items": {"anyOf": [{"const": i} for i in range(2000)]}}]
    problems = Validator({"anyOf": branches}).problems([-1] * 10_000)
    assert problems == ["arguments: too large to say what is wrong; send less"]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (float("nan"), "number out of range"),
        (10**400, "number out of range"),
        ({"a": {1}}, "set is not a JSON value"),
        ({1: 2}, "names must be text"),
        ("\ud800", "surrogate"),
        ([[[[[[[[[[[[[[1]]]]]]]]]]]]]], "nested deeper than 12 levels"),
        ([0] * 30_000, "more than 20000 values"),
        (["x" * 1000] * 300, "more than 200000 characters"),
    ],
)
def test_values_from_outside_are_bounded(value: Any, words: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        clean_json(value)
    assert words in str(caught.value)


@given(values)
def test_cleaning_copies_and_gives_numbers_one_spelling(value: Any) -> None:
    copy = clean_json(value)
    assert copy == value
    assert json.dumps(clean_json(copy)) == json.dumps(copy)
    assert not isinstance(copy, float) or not copy.is_integer()
    if isinstance(value, list | dict):
        assert copy is not value
