"""Schemas of every dialect, normalised: they accept what the original accepts by `jsonschema`."""

from collections.abc import Mapping
from typing import Any

import jsonschema
import jsonschema.validators
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tool_specs.importing.dialects import (
    MAX_NODES,
    Dialect,
    Reading,
    UnusableError,
    dialect_of,
    normalised,
)

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([0.5, -1.5, 2.25]),  # 1.0 is an integer from draft-06 on, and not before
    st.text("ab", max_size=3),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=6,
)


def options(inner: st.SearchStrategy[Any], draft: int) -> list[st.SearchStrategy[Any]]:
    """Schemas of one object each, of all keywords that drafts treat differently. Left out is what
    the oracle gets wrong: additionalItems beside a boolean, unevaluated beside additional."""
    bounds = {"minimum": st.integers(-2, 2), "maximum": st.integers(-2, 2)}
    exclusive = st.booleans() if draft == 0 else st.integers(-2, 2)
    names = st.lists(st.sampled_from("abc"), unique=True, min_size=1, max_size=2)
    members = st.dictionaries(st.sampled_from("abc"), inner, min_size=1, max_size=2)
    numbers = st.fixed_dictionaries(
        {"type": st.sampled_from(["number", "integer", ["integer", "null"], ["number"]])},
        optional=bounds | {"exclusiveMinimum": exclusive, "exclusiveMaximum": exclusive},
    )
    objects = st.fixed_dictionaries(
        {"type": st.just("object"), "properties": members},
        optional={
            "required": names,
            "additionalProperties": st.one_of(st.booleans(), inner),
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "b$"]), inner, max_size=1),
            "propertyNames": st.just({"maxLength": 0}),
            "unevaluatedProperties": st.booleans(),
            "dependentRequired": st.dictionaries(st.sampled_from("abc"), names, max_size=1),
            "minProperties": st.integers(0, 2),
        },
    ).filter(lambda one: not {"unevaluatedProperties", "additionalProperties"} <= one.keys())
    schema_or_names = st.one_of(names, inner)
    dependent = st.fixed_dictionaries(
        {"dependencies": st.dictionaries(st.sampled_from("abc"), schema_or_names, max_size=2)}
    )
    listed = st.lists(inner, min_size=1, max_size=2)
    arrays = st.fixed_dictionaries(
        {"items": st.one_of(inner, listed) if draft < 4 else inner},
        optional={
            "additionalItems": st.one_of(st.booleans(), inner) if draft else st.booleans(),
            "prefixItems": listed,
            "minItems": st.integers(0, 2),
            "uniqueItems": st.booleans(),
        },
    ).filter(lambda one: not isinstance(one["items"], bool))
    contains = st.fixed_dictionaries(
        {"contains": inner}, optional={"minContains": st.integers(0, 2)}
    )
    combined = st.fixed_dictionaries(
        {},
        optional={
            "anyOf": listed,
            "allOf": listed,
            "oneOf": listed,
            "not": inner,
            "if": inner,
            "then": inner,
            "else": inner,
            "const": scalars,
        },
    )
    beside = st.fixed_dictionaries(
        {"$ref": st.sampled_from(["#/definitions/id", "#/definitions/pair"])},
        optional={"maxLength": st.integers(0, 2), "title": st.just("T"), "properties": members},
    )
    words = st.just({"x-order": 1, "examples": ["a"], "format": "email", "nullable": True})
    enum = st.fixed_dictionaries({"enum": st.lists(scalars, min_size=1, max_size=3)})
    return [numbers, objects, dependent, arrays, contains, combined, beside, words, enum]


def schemas(draft: int) -> st.SearchStrategy[Any]:
    leaf = st.one_of(
        st.just({"type": "string", "nullable": True}),
        st.just({"type": ["string", "null"], "maxLength": 2}),
        st.just({"type": "integer"}),
        st.just({"$ref": "#/definitions/id"}),
        *([st.booleans()] if draft else []),
    )
    return st.recursive(leaf, lambda inner: st.one_of(*options(inner, draft)), max_leaves=5)


def whole(schema: Any, uri: str | None) -> dict[str, Any]:
    """A schema object around it, with definitions to refer to."""
    inner = {"id": {"type": "string", "minLength": 2}, "pair": {"properties": {"a": {}}}}
    top = {"properties": {"v": schema}, "required": ["v"], "definitions": inner}
    return {"$schema": uri, **top} if uri else top


DRAFTS = {
    "http://json-schema.org/draft-04/schema#": (0, jsonschema.Draft4Validator),
    "http://json-schema.org/draft-06/schema#": (1, jsonschema.Draft6Validator),
    "http://json-schema.org/draft-07/schema#": (2, jsonschema.Draft7Validator),
    "https://json-schema.org/draft/2019-09/schema": (3, jsonschema.Draft201909Validator),
    "https://json-schema.org/draft/2020-12/schema": (4, jsonschema.Draft202012Validator),
}


@pytest.mark.parametrize("uri", DRAFTS)
def test_normalised_accepts_what_the_original_accepts(uri: str) -> None:
    draft, original = DRAFTS[uri]

    @settings(max_examples=examples(120))
    @given(schemas(draft), values)
    def holds(schema: Any, value: Any) -> None:
        given_schema = whole(schema, uri)
        plain = normalised(given_schema)
        jsonschema.Draft202012Validator.check_schema(plain)
        assert "$ref" not in str(plain)
        instance = {"v": value}
        verdict = jsonschema.Draft202012Validator(plain).is_valid(instance)
        assert verdict == original(given_schema).is_valid(instance)

    holds()


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "integer", "minimum": 1, "exclusiveMinimum": True},
        {"type": "integer", "maximum": 1, "exclusiveMaximum": True},
        {"type": "integer", "minimum": 1, "exclusiveMinimum": False},
        {"$ref": "#/definitions/pair", "additionalProperties": False},
        {"$ref": "#/definitions/pair", "properties": {"b": {"type": "string"}}},
        {"dependencies": {"a": ["b"], "b": {"required": ["c"]}}},
        {"items": [{"type": "integer"}], "additionalItems": False},
        {"prefixItems": [{"type": "integer"}]},
    ],
    ids=str,
)
def test_the_borders_are_where_they_were(schema: dict[str, Any]) -> None:
    """What chance seldom draws. A form that a dialect does not have is left to the others."""
    instances = [
        0,
        1,
        2,
        {},
        {"a": 1},
        {"a": 1, "b": 2},
        {"b": 1},
        [],
        [1],
        ["a"],
        [1, 2],
        [1, "a"],
    ]
    checked = 0
    for uri, (_, original) in DRAFTS.items():
        given_schema = whole(schema, uri)
        if not jsonschema.validators.validator_for(original.META_SCHEMA)(
            original.META_SCHEMA
        ).is_valid(given_schema):
            continue
        checked += 1
        plain = jsonschema.Draft202012Validator(normalised(given_schema))
        for value in instances:
            verdict = original(given_schema).is_valid({"v": value})
            assert plain.is_valid({"v": value}) == verdict, (uri, value)
    assert checked


def nullable_type(validator: Any, types: Any, instance: Any, schema: Mapping[str, Any]) -> Any:
    """OpenAPI 3.0.3: null is allowed beside the type of the same object."""
    if instance is None and schema.get("nullable") is True:
        return
    yield from jsonschema.Draft4Validator.VALIDATORS["type"](validator, types, instance, schema)


OPENAPI = jsonschema.validators.extend(jsonschema.Draft4Validator, {"type": nullable_type})


@settings(max_examples=examples(120))
@given(schemas(0), values)
def test_openapi_3_0_is_draft_04_with_nullable(schema: Any, value: Any) -> None:
    document = whole(schema, None)
    plain = normalised(document, "openapi-3.0")
    instance = {"v": value}
    verdict = jsonschema.Draft202012Validator(plain).is_valid(instance)
    assert verdict == OPENAPI(document).is_valid(instance)


@given(schemas(2), values)
def test_normalising_twice_changes_nothing(schema: Any, value: Any) -> None:
    plain = normalised(whole(schema, "http://json-schema.org/draft-07/schema#"))
    assert normalised(plain, "2020-12") == plain


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ({"minimum": 0, "exclusiveMinimum": True}, {"exclusiveMinimum": 0}),
        ({"minimum": 0, "exclusiveMinimum": False}, {"minimum": 0}),
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        ({"type": ["string"]}, {"type": "string"}),
        ({"type": "any", "description": "x"}, {"description": "x"}),
        (
            {"items": [{"type": "string"}], "additionalItems": False},
            {"prefixItems": [{"type": "string"}], "items": False},
        ),
        ({"example": 3, "x-order": 1, "$comment": "c", "optional": True}, {"examples": [3]}),
        ({"properties": {"$ref": {}, "enum": {}}}, {"properties": {"$ref": {}, "enum": {}}}),
    ],
)  # fmt: skip
def test_a_schema_that_declares_no_dialect_is_read_as_it_is_meant(
    written: dict[str, Any], read: dict[str, Any]
) -> None:
    assert normalised(written) == read


def test_words_beside_a_reference_are_the_users_and_not_the_definitions() -> None:
    defined = {"type": "string", "description": "An id."}
    schema = {"$ref": "#/$defs/id", "description": "Id of the order.", "$defs": {"id": defined}}
    assert normalised(schema) == {"type": "string", "description": "Id of the order."}


def test_a_reference_by_the_schemas_own_address_is_a_local_one() -> None:
    definitions = {"a b/c": {"type": "string"}}
    schema = {"$id": "https://x.example/s", "$ref": "https://x.example/s#/$defs/a%20b~1c"}
    assert normalised(schema | {"$defs": definitions}) == {"type": "string"}


@pytest.mark.parametrize(
    ("declared", "dialect"),
    [
        ("http://json-schema.org/draft-04/schema", "draft-04"),
        ("https://json-schema.org/draft/2020-12/schema#", "2020-12"),
        ("https://json-schema.org/draft/2019-09/schema", "2019-09"),
        ("https://nobody.example/draft-99", "any"),
        (3, "any"),
        (None, "any"),
    ],
)
def test_the_dialect_is_what_the_schema_declares(declared: Any, dialect: Dialect) -> None:
    assert dialect_of({"$schema": declared}) == dialect


def test_one_document_has_one_bound_however_many_schemas_are_read() -> None:
    reading = Reading({}, "2020-12")
    reading.read({"enum": [0] * (MAX_NODES // 2)})
    with pytest.raises(UnusableError, match="huge_schema"):
        reading.read({"enum": [0] * (MAX_NODES // 2)})
