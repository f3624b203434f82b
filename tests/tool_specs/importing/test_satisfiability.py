"""Schemas that nothing satisfies: found where there is a proof, and never where a value exists."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.tool_specs.importing import test_dialects as dialects
from tests.tool_specs.language import test_schemas as language
from tool_specs.importing.dialects import normalised
from tool_specs.importing.satisfiability import unsatisfiable
from tool_specs.importing.tool_lists import ToolListSource, rows_of_answer
from tool_specs.language.schemas import Validator

TEXT, NUMBER = {"type": "string"}, {"type": "number"}
INTEGER = {"type": "integer"}
WITH_A = {"type": "object", "required": ["a"]}
CLOSED = {"additionalProperties": False}


@settings(max_examples=examples(200))
@given(language.schemas, st.lists(language.values, min_size=1, max_size=12))
def test_a_schema_of_which_a_value_is_drawn_can_be_satisfied(schema: Any, drawn: list[Any]) -> None:
    if any(Validator(schema).is_valid(value) for value in drawn):
        assert not unsatisfiable(schema)


@settings(max_examples=examples(200))
@given(dialects.schemas(4), st.lists(dialects.values, min_size=1, max_size=12))
def test_the_same_for_schemas_with_every_keyword(schema: Any, drawn: list[Any]) -> None:
    plain = normalised(dialects.whole(schema, "https://json-schema.org/draft/2020-12/schema"))
    if any(Validator(plain).is_valid({"v": value}) for value in drawn):
        assert not unsatisfiable(plain)


@pytest.mark.parametrize(
    "schema",
    [
        False,
        {"enum": []},
        {"not": {}},
        {"not": {"description": "anything"}},
        {"type": "number", "minimum": 5, "maximum": 4},
        {"type": "number", "minimum": 5, "exclusiveMaximum": 5},
        {"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 2},
        {"type": "integer", "minimum": 0.25, "maximum": 0.75},
        {"type": "integer", "minimum": 1, "maximum": 6, "multipleOf": 7},
        {"multipleOf": 4, "allOf": [{"multipleOf": 6}], "minimum": 1, "maximum": 11} | INTEGER,
        {"type": "string", "minLength": 3, "maxLength": 2},
        {"type": "string", "enum": ["ab"], "maxLength": 1},
        {"type": "integer", "const": "a"},
        {"type": "array", "minItems": 2, "maxItems": 1},
        {"type": "array", "minItems": 1, "items": False},
        {"type": "array", "minItems": 2, "prefixItems": [TEXT], "items": False},
        {"type": "array", "minItems": 1, "items": {"enum": []}},
        {"type": "array", "contains": NUMBER, "items": TEXT},
        {"type": "array", "contains": NUMBER, "maxItems": 0},
        {"type": "array", "contains": NUMBER, "minContains": 2, "maxContains": 1},
        {"type": "object", "required": ["a"], "properties": {"b": {}}, **CLOSED},
        {"type": "object", "required": ["a"], "properties": {"a": {"enum": []}}},
        {"type": "object", "required": ["a"], "properties": {"a": False}},
        {"type": "object", "required": ["ab"], "propertyNames": {"maxLength": 1}},
        {"type": "object", "required": ["a", "b"], "maxProperties": 1},
        {"type": "object", "minProperties": 2, "properties": {"a": {}}, **CLOSED},
        WITH_A | {"patternProperties": {"^a": TEXT}, "properties": {"a": NUMBER}},
        WITH_A | {"dependentRequired": {"a": ["b"]}, "properties": {"a": {}}} | CLOSED,
        WITH_A | {"dependentSchemas": {"a": {"required": ["b"]}}, "maxProperties": 1},
        {"allOf": [TEXT, NUMBER]},
        {"allOf": [{"const": 1}, {"const": 2}]},
        {"allOf": [{"enum": ["a", "b"]}, {"enum": ["c"]}]},
        WITH_A | {"allOf": [{"properties": {"a": {}}, **CLOSED}, {"required": ["b"]}]},
        {"type": "string", "anyOf": [NUMBER, {"type": "null"}]},
        {"oneOf": [TEXT, TEXT]},
        {"type": "boolean", "not": {"type": "boolean"}},
        {"type": "null", "not": {"const": None}},
    ],
    ids=str,
)  # fmt: skip
def test_contradictions_are_found(schema: Any) -> None:
    assert unsatisfiable(schema)
    assert not unsatisfiable({"anyOf": [schema, {"type": "null"}]})
    below = {"type": "object", "properties": {"a": schema}}
    assert not unsatisfiable(below)  # an optional parameter that nobody can give
    assert unsatisfiable(below | {"required": ["a"]})


def test_work_that_grows_too_long_says_nothing() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(7):
        schema = WITH_A | {"properties": {"a": schema}, "anyOf": [{"title": i} for i in "abcd"]}
    assert not unsatisfiable(schema | {"anyOf": [{"enum": []}]})


def test_a_tool_that_nobody_can_call_is_dropped_with_a_reason_of_its_own() -> None:
    source = ToolListSource(server="shop", category="software_apps", may_write=True)
    schema = {"type": ["object", "null"], "required": ["id"], "properties": {}, **CLOSED}
    tool = {"name": "get", "inputSchema": schema, "outputSchema": {"enum": []}}
    (row,) = rows_of_answer([tool], source)
    assert (row["drop_reason"], row["output_schema"]) == ("unsatisfiable_schema", None)
    assert row["annotations"]["outputSchemaFault"] == "unsatisfiable_schema"
