"""Patterns that the engine cannot take: what is left accepts at least what the author accepted."""

from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.tool_specs.importing.test_dialects import schemas, values
from tool_specs.importing.dialects import normalised
from tool_specs.importing.patterns import without_unsupported
from tool_specs.importing.tool_lists import ToolListSource, rows_of_answer
from tool_specs.language.schemas import Validator

AHEAD = "^(?=a)"
"""A lookahead: Python's engine, which is the oracle's, takes it."""

SOURCE = ToolListSource(server="shop", category="software_apps", may_write=True)

texts = st.fixed_dictionaries({"type": st.just("string"), "pattern": st.sampled_from([AHEAD, "b"])})
named = st.fixed_dictionaries(
    {"patternProperties": st.just({AHEAD: {"type": "integer"}})},
    optional={"additionalProperties": st.booleans(), "properties": st.just({"b": {"const": 1}})},
)
around = st.recursive(
    st.one_of(texts, named, schemas(4).map(lambda one: normalised(whole_of(one)))),
    lambda inner: st.one_of(
        st.fixed_dictionaries(
            {},
            optional={
                "not": inner,
                "if": inner,
                "then": inner,
                "else": inner,
                "oneOf": st.lists(inner, min_size=1, max_size=2),
                "anyOf": st.lists(inner, min_size=1, max_size=2),
                "contains": inner,
                "maxContains": st.integers(1, 2),
                "unevaluatedProperties": st.booleans(),
                "unevaluatedItems": st.booleans(),
                "propertyNames": inner,
            },
        ),
    ),
    max_leaves=4,
)


def whole_of(schema: Any) -> dict[str, Any]:
    inner = {"id": {"type": "string", "minLength": 2}, "pair": {"properties": {"a": {}}}}
    return {"allOf": [schema], "definitions": inner}


@settings(max_examples=examples(150))
@given(around, values)
def test_what_the_author_accepts_is_accepted_still(schema: Any, value: Any) -> None:
    loose, removed = without_unsupported(schema)
    compiled = Validator(loose)
    if jsonschema.Draft202012Validator(schema).is_valid(value):
        assert compiled.is_valid(value)
    assert bool(removed) == (AHEAD in str(schema))
    assert removed or loose == schema


def row_of(members: dict[str, Any]) -> dict[str, Any]:
    schema = {"type": "object", "properties": members}
    (row,) = rows_of_answer([{"name": "get", "inputSchema": schema}], SOURCE)
    return row


@pytest.mark.parametrize("pattern", ["^(?!x).+$", r"(a)\1", "(?<=a)b", "(a{1000}){1000}", "["])
def test_a_pattern_costs_itself_and_the_row_says_so(pattern: str) -> None:
    row = row_of({"a.b": {"type": "string", "pattern": pattern, "minLength": 2}})
    assert row["drop_reason"] is None
    assert row["input_schema"]["properties"]["a.b"] == {"type": "string", "minLength": 2}
    place = "inputSchema/properties/a.b/pattern"
    assert row["annotations"]["removedPatterns"] == {place: pattern}


def test_patterns_that_the_engine_takes_stay() -> None:
    members = {"a": {"type": "string", "pattern": r"^\d{4}-\d{2}$"}}
    row = row_of(members)
    assert row["input_schema"]["properties"] == members
    assert "removedPatterns" not in row["annotations"]
