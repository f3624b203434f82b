"""Parameters of any script: models write other names, and the tool gets its own."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings

from tests.examples import examples
from tests.tool_specs.importing.test_dialects import schemas, values
from tests.tool_specs.importing.test_dialects import whole as whole_of
from tool_specs.importing.dialects import normalised
from tool_specs.importing.names import API_PARAMETER
from tool_specs.importing.parameter_names import own_arguments, writable
from tool_specs.importing.tool_lists import ToolListSource, rows_of_answer
from tool_specs.language.schemas import Validator

CITY, DAYS, DAY, ICON = "\u57ce\u5e02", "\u0434\u043d\u0438", "\u064a\u0648\u0645", "\U0001f324"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        CITY: {"type": "string"},
        "unit": {"enum": ["C", "F"]},
        DAYS: {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {DAY: {"type": "integer"}},
                "required": [DAY],
            },
            "default": [{DAY: 1}],
        },
        ICON: {"type": "object", "additionalProperties": {"$ref": "#/$defs/place"}},
    },
    "required": [CITY],
    "dependentRequired": {DAYS: [CITY]},
    "$defs": {"place": {"anyOf": [{"properties": {CITY: {"type": "null"}}}, {"type": "string"}]}},
}
MAPPED = {
    "ChengShi": "Graz",
    "dni": [{"ywm": 2, CITY: "free"}],
    "white_sun_small_cloud": {"x": {"ChengShi": None}},
}
OWN = {CITY: "Graz", DAYS: [{DAY: 2, CITY: "free"}], ICON: {"x": {CITY: None}}}


def test_names_are_readable_and_arguments_lead_back_at_any_depth() -> None:
    tool = writable(normalised(SCHEMA))  # type: ignore[arg-type]
    assert list(tool.schema["properties"]) == ["ChengShi", "unit", "dni", "white_sun_small_cloud"]
    assert tool.schema["required"] == ["ChengShi"]
    assert tool.schema["dependentRequired"] == {"dni": ["ChengShi"]}
    assert tool.schema["properties"]["dni"]["default"] == [{"ywm": 1}]
    assert Validator(tool.schema).is_valid(MAPPED)
    assert own_arguments(MAPPED, tool) == OWN
    assert Validator(SCHEMA).is_valid(OWN)


def test_a_row_says_which_names_the_tool_has() -> None:
    source = ToolListSource(server="weather", category="software_apps", may_write=True)
    (row,) = rows_of_answer([{"name": "\u5929\u6c14", "inputSchema": SCHEMA}], source)
    assert (row["name"], row["annotations"]["originalName"]) == ("TianQi", "\u5929\u6c14")
    assert row["annotations"]["originalParameters"] == {
        "ChengShi": CITY,
        "dni": DAYS,
        "white_sun_small_cloud": ICON,
        "ywm": DAY,
    }
    assert row["drop_reason"] is None


@pytest.mark.parametrize("name", ["a", "X-Trace", "user.id", "_", "0", "x" * 64])
def test_names_that_every_api_takes_stay(name: str) -> None:
    schema = {"type": "object", "properties": {name: {}}}
    assert writable(schema) == (schema, {})


def test_a_schema_that_speaks_of_names_by_patterns_keeps_its_own() -> None:
    schema = {"type": "object", "properties": {CITY: {}}, "patternProperties": {"^.$": {}}}
    assert writable(schema) == (schema, {})


STRANGE = {"a": CITY, "b": ICON}


def strange(node: Any) -> Any:
    """The schema with names that no API takes, wherever a member has one."""
    if isinstance(node, list):
        return [strange(one) for one in node]
    if not isinstance(node, dict):
        return STRANGE.get(node, node)
    return {
        STRANGE.get(key, key): one if key in ("const", "enum", "examples") else strange(one)
        for key, one in node.items()
    }


def with_names(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, list):
        return [with_names(one, names) for one in value]
    if not isinstance(value, dict):
        return value
    return {names.get(name, name): with_names(one, names) for name, one in value.items()}


@settings(max_examples=examples(150))
@given(schemas(4), values)
def test_the_tool_accepts_what_the_schema_for_models_accepts(schema: Any, value: Any) -> None:
    """Schemas of members `a` and `b`, given names that have to be mapped, against themselves."""
    plain = normalised(whole_of(schema, "https://json-schema.org/draft/2020-12/schema"))
    if any(word in str(plain) for word in ("patternProperties", "propertyNames")):
        return
    tool = writable(strange(plain))
    assert all(API_PARAMETER.fullmatch(name) for name in tool.originals)
    written = {own: name for name, own in tool.originals.items()}
    arguments = {
        "v": with_names(value, {key: written.get(own, own) for key, own in STRANGE.items()})
    }
    accepted = Validator(plain).is_valid({"v": value})
    assert Validator(tool.schema).is_valid(arguments) == accepted
    assert Validator(strange(plain)).is_valid(own_arguments(arguments, tool)) == accepted
