"""Tool lists in the forms that vendors' documentation shows: one tool, lists, whole requests."""

import json
from pathlib import Path
from typing import Any

import pytest

from records.tables.schemas import Row
from tool_specs.importing.tool_files import read_listings
from tool_specs.importing.tool_lists import rows_of_answer

WORDS = {"name": "find_ferry", "description": "Find ferries between two ports."}
SCHEMA = {
    "type": "object",
    "properties": {
        "to": {"type": "string", "description": "Port of arrival."},
        "from": {"type": "string", "description": "Port of departure."},
        "cabins": {"type": ["integer", "null"], "description": "How many.", "minimum": 1},
    },
    "required": ["to", "from"],
}
"""What every form below says, null apart where a form has no word for it."""

GEMINI: dict[str, Any] = WORDS | {
    "parameters": {
        "type": "OBJECT",
        "properties": {
            "from": {"type": "STRING", "description": "Port of departure."},
            "to": {"type": "STRING", "description": "Port of arrival."},
            "cabins": {
                "type": "INTEGER",
                "description": "How many.",
                "minimum": 1,
                "nullable": True,
            },
        },
        "propertyOrdering": ["to", "from"],
        "required": ["to", "from"],
    }
}
GEMINI_DUMP: dict[str, Any] = WORDS | {
    "behavior": None,
    "parameters": GEMINI["parameters"] | {"any_of": None, "max_items": None, "title": None},
    "parameters_json_schema": None,
    "response": None,
}
BEDROCK: dict[str, Any] = {"toolSpec": WORDS | {"inputSchema": {"json": SCHEMA}}}
ANTHROPIC = WORDS | {"input_schema": SCHEMA, "cache_control": {"type": "ephemeral"}}
OPENAI = {"type": "function", "function": WORDS | {"parameters": SCHEMA}}
STRUCTURED_TOOL = WORDS | {
    "args_schema": {"title": "FindFerryInput", **SCHEMA},
    "return_direct": False,
    "tags": None,
    "metadata": None,
}
MODEL = {"title": "find_ferry", "description": WORDS["description"], **SCHEMA}
USER = {"role": "user", "content": "Is there a ferry to Split?"}


def twice(request: Any) -> str:
    """Lines of a batch."""
    return f"{json.dumps(request)}\n" * 2


def rows_of(document: Any, path: Path) -> list[Row]:
    lines = document if isinstance(document, str) else json.dumps(document)
    path.write_text(lines)
    return [
        row
        for one in read_listings(path)
        for row in rows_of_answer(one.tools, one.source, one.dialect)
    ]


@pytest.mark.parametrize(
    "document",
    [
        GEMINI,
        [GEMINI],
        {"functionDeclarations": [GEMINI]},
        [{"functionDeclarations": [GEMINI]}],
        [{"function_declarations": [GEMINI_DUMP]}],
        {"function_declarations": [WORDS | {"parameters_json_schema": SCHEMA}]},
        {
            "contents": [{"role": "user", "parts": [{"text": "Is there a ferry?"}]}],
            "tools": [{"functionDeclarations": [GEMINI]}],
            "toolConfig": {"functionCallingConfig": {"mode": "ANY"}},
        },
        {"model": "m", "contents": "Hi", "config": {"tools": [{"functionDeclarations": [GEMINI]}]}},
        twice({"key": "1", "request": {"tools": [{"functionDeclarations": [GEMINI]}]}}),
        BEDROCK,
        [BEDROCK],
        {"tools": [BEDROCK], "toolChoice": {"auto": {}}},
        {
            "modelId": "m",
            "messages": [{"role": "user", "content": [{"text": "Is there a ferry?"}]}],
            "toolConfig": {"tools": [BEDROCK], "toolChoice": {"any": {}}},
        },
        BEDROCK["toolSpec"],
        ANTHROPIC,
        [ANTHROPIC],
        {"model": "m", "max_tokens": 1024, "tools": [ANTHROPIC], "messages": [USER]},
        {"requests": [{"custom_id": str(i), "params": {"tools": [ANTHROPIC]}} for i in range(2)]},
        [{"type": "custom", **ANTHROPIC}],
        OPENAI,
        [OPENAI],
        {"model": "m", "messages": [USER], "tools": [OPENAI], "tool_choice": "auto"},
        twice({"custom_id": "1", "method": "POST", "body": {"tools": [OPENAI]}}),
        {"kwargs": {"tools": [OPENAI]}},
        STRUCTURED_TOOL,
        [STRUCTURED_TOOL],
        MODEL,
        [MODEL],
    ],
    ids=lambda document: str(document)[:60],
)  # fmt: skip
def test_every_form_says_the_same(document: Any, tmp_path: Path) -> None:
    (row,) = rows_of(document, tmp_path / "ferries.json")
    assert (row["name"], row["description"]) == (WORDS["name"], WORDS["description"])
    schema = {key: one for key, one in row["input_schema"].items() if key != "title"}
    assert schema == SCHEMA
    assert list(schema["properties"]) == ["to", "from", "cabins"]
    assert (row["server"], row["drop_reason"]) == ("ferries", None)


def test_schemas_of_gemini_are_read_at_any_depth(tmp_path: Path) -> None:
    leg = {
        "type": "OBJECT",
        "properties": {"kind": {"type": "STRING", "format": "enum", "enum": ["car", "foot"]}},
    }
    parameters = {
        "type": "OBJECT",
        "properties": {
            "legs": {"type": "ARRAY", "items": leg, "minItems": "1", "maxItems": "9"},
            "class": {"type": "STRING", "enum": ["a", "b"], "nullable": True},
            "when": {"anyOf": [{"type": "STRING"}, {"type": "NUMBER"}]},
            "type": {"type": "TYPE_UNSPECIFIED", "description": "STRING"},
        },
    }
    (row,) = rows_of({"functionDeclarations": [WORDS | {"parameters": parameters}]}, tmp_path / "a")
    kind = {"type": "string", "format": "enum", "enum": ["car", "foot"]}
    leg = {"type": "object", "properties": {"kind": kind}}
    assert row["input_schema"]["properties"] == {
        "legs": {"type": "array", "items": leg, "minItems": 1, "maxItems": 9},
        "class": {"type": ["string", "null"], "enum": ["a", "b", None]},
        "when": {"anyOf": [{"type": "string"}, {"type": "number"}]},
        "type": {"description": "STRING"},
    }


def test_a_declaration_without_parameters_takes_none(tmp_path: Path) -> None:
    (row,) = rows_of({"tools": [{"functionDeclarations": [WORDS]}]}, tmp_path / "a")
    assert row["input_schema"] == {"type": "object", "properties": {}}


def test_arguments_of_a_langchain_tool_are_required_without_a_default(tmp_path: Path) -> None:
    args = {
        "query": {"title": "Query", "type": "string"},
        "limit": {"type": "integer", "default": 5},
    }
    (row,) = rows_of([WORDS | {"args": args}], tmp_path / "a")
    assert row["input_schema"] == {"type": "object", "properties": args, "required": ["query"]}


def test_definitions_of_a_pydantic_model_are_written_out(tmp_path: Path) -> None:
    model = {
        "title": "BookFerry",
        "type": "object",
        "description": "Book a ferry.",
        "properties": {"car": {"$ref": "#/$defs/Car"}},
        "$defs": {"Car": {"properties": {"plate": {"type": "string"}}, "type": "object"}},
    }
    (row,) = rows_of(model, tmp_path / "a")
    assert row["name"] == "BookFerry"
    car = row["input_schema"]["properties"]["car"]
    assert car == {"properties": {"plate": {"type": "string"}}, "type": "object"}


@pytest.mark.parametrize(
    ("tool", "reason"),
    [
        ({"googleSearch": {}}, "missing_name"),
        ({"cachePoint": {"type": "default"}}, "missing_name"),
        ({"type": "web_search_20250305", "name": "web_search", "max_uses": 5}, "missing_schema"),
    ],
)
def test_what_vendors_run_themselves_costs_the_others_nothing(
    tool: Any, reason: str, tmp_path: Path
) -> None:
    rows = rows_of({"tools": [tool, OPENAI]}, tmp_path / "a")
    assert [row["drop_reason"] for row in rows] == [reason, None]
