"""Files that users have at hand: the kind is found, what is none is refused with a word on it."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from records.errors import ConfigError
from tests.tool_specs.importing.test_openapi import DOCUMENT
from tool_specs.importing.tool_files import read_listings
from tool_specs.importing.tool_lists import rows_of_answer

SCHEMA = {"type": "object", "properties": {"id": {"type": "string"}}}
MCP = {"name": "get", "description": "Get.", "inputSchema": SCHEMA}
FUNCTION = {"name": "get", "description": "Get.", "parameters": SCHEMA}


def written(path: Path, document: Any) -> Path:
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


@pytest.mark.parametrize(
    "document",
    [
        {"tools": [MCP]},
        {"jsonrpc": "2.0", "id": 1, "result": {"tools": [MCP]}},
        [{"tools": [MCP]}, {"tools": []}],
        [MCP],
        MCP,
        [{"type": "function", "function": FUNCTION}],
        [{"type": "function", **FUNCTION}],
        {"model": "x", "messages": [], "tools": [{"type": "function", "function": FUNCTION}]},
        {"functions": [FUNCTION]},
        [{"name": "get", "description": "Get.", "input_schema": SCHEMA}],
        json.dumps(MCP) + "\n\n" + json.dumps({"tools": []}) + "\n",
        yaml.safe_dump({"tools": [MCP]}),
        "\ufeff" + json.dumps({"tools": [MCP]}),
    ],
    ids=str,
)
def test_every_form_of_a_list_of_tools_is_read(tmp_path: Path, document: Any) -> None:
    (listing,) = read_listings(written(tmp_path / "my-tools.json", document))
    (row,) = rows_of_answer(listing.tools, listing.source, listing.dialect)
    assert (row["name"], row["description"], row["input_schema"]) == ("get", "Get.", SCHEMA)
    assert (row["server"], row["drop_reason"]) == ("my_tools", None)


def test_lines_about_servers_keep_them_apart_with_licence_and_category(tmp_path: Path) -> None:
    line = {"server": "Shop", "category": "Web Search & Research", "tools": [MCP]}
    lines = [line | {"slug": "@a/shop", "license": "MIT"}, line | {"slug": "@b/shop"}, line]
    path = tmp_path / "servers.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, lines)).encode()))
    sources = [listing.source for listing in read_listings(path)]
    assert [source.server for source in sources] == ["@a/shop", "@b/shop", "Shop"]
    assert {source.category for source in sources} == {"web_search_research"}
    assert [source.license for source in sources] == ["MIT", "", ""]


@pytest.mark.parametrize("bad", [5, {"server": "z", "error": "timeout"}, [MCP], None])
def test_an_entry_that_lists_nothing_is_a_row_with_a_reason(tmp_path: Path, bad: Any) -> None:
    listings = read_listings(written(tmp_path / "all.json", [{"server": "a", "tools": [MCP]}, bad]))
    rows = [row for one in listings for row in rows_of_answer(one.tools, one.source)]
    assert [(row["server"], row["drop_reason"]) for row in rows] == [
        ("a", None),
        ("all", "missing_name"),
    ]


def test_a_function_without_parameters_takes_none(tmp_path: Path) -> None:
    document = [{"type": "function", "function": {"name": "ping"}}]
    (listing,) = read_listings(written(tmp_path / "a.json", document))
    (row,) = rows_of_answer(listing.tools, listing.source)
    assert row["input_schema"] == {"type": "object", "properties": {}}


@pytest.mark.parametrize("dump", [json.dumps, yaml.safe_dump])
def test_openapi_documents_are_known_by_their_first_word(tmp_path: Path, dump: Any) -> None:
    path = written(tmp_path / "pets.yaml", dump(DOCUMENT))
    (listing,) = read_listings(path)
    assert (listing.source.server, listing.source.license) == ("Pet shop", "MIT License")
    assert len(listing.tools) == 7


def test_yaml_keeps_dates_and_status_codes_as_text(tmp_path: Path) -> None:
    text = "tools: [{name: get, inputSchema: {default: 2026-01-01, 200: {}}}]"
    (listing,) = read_listings(written(tmp_path / "a.yaml", text))
    assert listing.tools[0]["inputSchema"] == {"default": "2026-01-01", "200": {}}


YAML_BOMB = "a0: &a0 [1, 1]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12)
)

MERGE_BOMB = "a0: &a0 {x: 1, y: 2}\n" + "".join(
    f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 9)}]}}\n" for i in range(1, 12)
)
WIDE_MERGE = f"a: &a {{{', '.join(f'k{i}: 1' for i in range(1000))}}}\n" + "".join(
    f"b{i}: {{<<: *a}}\n" for i in range(210)
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("document", "words"),
    [
        ("", "it is empty"),
        ("  \n", "it is empty"),
        ("{]", "it is no JSON"),
        ("just words", "a value without tools"),
        ("a: [", "neither JSON nor YAML"),
        ("!!python/object/apply:os.system ['true']", "neither JSON nor YAML"),
        (YAML_BOMB, "values once aliases are written out"),
        (MERGE_BOMB, "merge keys that copy over 200000 members"),
        (WIDE_MERGE, "merge keys that copy over 200000 members"),
        ("a: &a {<<: *a}", "nested too deep"),
        ("a: !!bool maybe", "neither JSON nor YAML"),
        ("a: !!int ''", "neither JSON nor YAML"),
        ("a: !!timestamp abc", "neither JSON nor YAML"),
        ("a: !!timestamp 2026-01-01", "YAML with a date in it"),
        ("a: !!binary aGk=", "YAML with a bytes in it"),
        ("a: !!set {b}", "YAML with a set in it"),
        ("a: &a [*a]", "values once aliases are written out"),
        ("[" * 100_000, "nested too deep"),
        ("a: " + "[" * 600_000, "nested too deep"),
        ("[" + "9" * 5000 + "]", "no JSON that can be read"),
        ('{"tools": []}\n{"tools": [', "of which line 2 is no JSON"),
        ([1, 2], "a list without tools"),
        ([{"server": "z", "error": "timeout"}], "a list without tools"),
        ([], "a list without tools"),
        ({"a": 1, "b": 2}, "an object with a, b in it; tools/list answers, tool lists"),
        ({"mcpServers": {}}, "import each with --server or --url"),
        ({"servers": []}, "import those with --registry"),
        ({"swagger": "2.0", "paths": {}}, "convert it to OpenAPI 3"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_none_is_refused_with_its_path(tmp_path: Path, document: Any, words: str) -> None:
    path = written(tmp_path / "x.json", document)
    with pytest.raises(ConfigError) as caught:
        read_listings(path)
    assert words in str(caught.value)
    assert str(caught.value).startswith(f"{path} cannot be imported")


def test_merge_keys_are_followed(tmp_path: Path) -> None:
    text = "base: &b {name: get, description: Get.}\ntools: [{<<: *b, inputSchema: {}}]"
    (listing,) = read_listings(written(tmp_path / "a.yaml", text))
    assert listing.tools[0] == {"name": "get", "description": "Get.", "inputSchema": {}}


@pytest.mark.parametrize("separator", ["\u2028", "\u0085"])
def test_lines_end_at_line_feeds_only(tmp_path: Path, separator: str) -> None:
    tools = [MCP | {"name": name, "description": f"Get{separator}one."} for name in ("a", "b")]
    text = "\r\n".join(json.dumps(tool, ensure_ascii=False) for tool in tools)
    (listing,) = read_listings(written(tmp_path / "a.jsonl", text))
    assert listing.tools == tools


def test_files_that_cannot_be_opened_or_unpacked_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        read_listings(tmp_path / "none.json")
    with pytest.raises(ConfigError, match="Is a directory"):
        read_listings(tmp_path)
    (tmp_path / "cut.gz").write_bytes(gzip.compress(json.dumps([MCP]).encode())[:-9])
    with pytest.raises(ConfigError, match="no whole gzip file"):
        read_listings(tmp_path / "cut.gz")
    (tmp_path / "latin.json").write_bytes(b'["\xe9"]')
    with pytest.raises(ConfigError, match="no text in UTF-8"):
        read_listings(tmp_path / "latin.json")
