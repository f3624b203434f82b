"""OpenAPI documents of several files, and bodies that are forms."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from records.tables.schemas import Row
from tool_specs.importing.tool_files import read_listings
from tool_specs.importing.tool_lists import rows_of_answer


def operation(ref: str) -> dict[str, Any]:
    return {"post": {"requestBody": {"content": {"application/json": {"schema": {"$ref": ref}}}}}}


def rows_of(folder: Path, paths: dict[str, Any], **files: str) -> dict[str, Row]:
    schemas = {"Day": {"type": "string"}}
    document = {"openapi": "3.0.3", "paths": paths, "components": {"schemas": schemas}}
    for name, text in {"zoo.json": json.dumps(document), **files}.items():
        path = folder / name.replace("__", "/").replace("_yaml", ".yaml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (listing,) = read_listings(folder / "zoo.json")
    rows = rows_of_answer(listing.tools, listing.source, listing.dialect)
    return {row["annotations"]["http"]: row for row in rows}


KEEPER = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def test_references_are_read_from_where_they_stand(tmp_path: Path) -> None:
    paths = {
        "/a": {"$ref": "paths/animals.yaml#/animals"},
        "/b": operation("schemas/my%20animal.yaml"),
        "/c": operation("schemas/animals.yaml#/Animal/properties/keeper"),
    }
    animal = {
        "$id": "https://zoo.example/animal",
        "type": "object",
        "properties": {"keeper": {"$ref": "#/definitions/K"}, "kind": {"$ref": "../kind.yaml"}},
        "definitions": {"K": {"$ref": "animals.yaml#/Keeper"}},
    }
    animals = {
        "Animal": {"properties": {"keeper": {"$ref": "#/Keeper"}}},
        "Keeper": KEEPER,
    }
    shared = {
        "name": "day",
        "in": "query",
        "schema": {"$ref": "../zoo.json#/components/schemas/Day"},
    }
    found = rows_of(
        tmp_path / "in",
        paths,
        paths__animals_yaml=yaml.safe_dump(
            {"animals": {"parameters": [{"$ref": "#/day"}], "get": {}}, "day": shared}
        ),
        **{"schemas__my animal_yaml": yaml.safe_dump(animal)},
        schemas__animals_yaml=yaml.safe_dump(animals),
        kind_yaml=json.dumps({"enum": ["cat", {"$ref": "kind.yaml"}]}),
    )
    assert found["GET /a"]["input_schema"]["properties"] == {"day": {"type": "string"}}
    assert found["POST /b"]["input_schema"]["properties"] == {
        "keeper": KEEPER,
        "kind": {"enum": ["cat", {"$ref": "kind.yaml"}]},
    }
    assert found["POST /c"]["input_schema"]["properties"] == KEEPER["properties"]
    assert found["POST /c"]["input_schema"]["required"] == ["name"]


def test_an_operation_that_cannot_be_followed_costs_itself_and_says_why(tmp_path: Path) -> None:
    (tmp_path / "secret.yaml").write_text("type: object")
    inside = tmp_path / "in"
    inside.mkdir()
    (inside / "link.yaml").symlink_to(tmp_path / "secret.yaml")
    os.mkfifo(inside / "pipe.yaml")
    refs = {
        "/out": "../secret.yaml",
        "/deep": "sub/far.yaml#/far",
        "/root": str(tmp_path / "secret.yaml"),
        "/link": "link.yaml",
        "/pipe": "pipe.yaml",
        "/none": "none.yaml#/a",
        "/text": "notes.txt",
        "/bad": "bad.yaml",
        "/nul": "a%00.yaml",
        "/net": "https://127.0.0.1:1/a.yaml",
        "/no": "http://[",
        "/cycle": "one.yaml",
        "/good": "sub/far.yaml#/good",
    }
    found = rows_of(
        inside,
        {path: operation(ref) for path, ref in refs.items()},
        **{"notes.txt": "type: object"},
        sub__far_yaml="far: {$ref: ../../secret.yaml}\ngood: {type: object, properties: {a: {}}}",
        bad_yaml="a: [",
        one_yaml="properties: {two: {$ref: two.yaml}}",
        two_yaml="properties: {one: {$ref: one.yaml}}",
    )
    reasons = {http.split("/")[1]: row["drop_reason"] for http, row in found.items()}
    broken = ("link", "pipe", "none", "text", "bad", "nul", "no")
    assert reasons == {
        **dict.fromkeys(("out", "deep", "root"), "outside_reference"),
        **dict.fromkeys(broken, "broken_reference"),
        "net": "remote_reference",
        "cycle": "recursive_schema",
        "good": None,
    }
    said = found["POST /deep"]["annotations"]["inputSchemaFault"]
    assert said == "../secret.yaml# leaves the folder of the document"


@pytest.mark.parametrize(
    "kind", ["application/x-www-form-urlencoded", "multipart/form-data; charset=utf-8"]
)
def test_members_of_a_form_are_parameters(kind: str, tmp_path: Path) -> None:
    file = {"type": "string", "format": "binary"}
    form = {"type": "object", "properties": {"id": {}, "photo": file}, "required": ["photo"]}
    query = {"name": "id", "in": "query", "schema": {"type": "integer"}}
    post = {
        "parameters": [query],
        "requestBody": {"content": {"text/x": {}, kind: {"schema": form}}},
    }
    row = rows_of(tmp_path, {"/photos": {"post": post}})["POST /photos"]
    assert row["input_schema"] == {
        "type": "object",
        "properties": {"id": {"type": "integer"}, "body_id": {}, "photo": file},
        "required": ["photo"],
    }
    assert row["drop_reason"] is None


def test_json_is_taken_before_a_form(tmp_path: Path) -> None:
    content = {
        "multipart/form-data": {"schema": {"type": "object", "properties": {"a": {}}}},
        "application/json": {"schema": {"type": "object", "properties": {"b": {}}}},
    }
    row = rows_of(tmp_path, {"/x": {"put": {"requestBody": {"content": content}}}})["PUT /x"]
    assert list(row["input_schema"]["properties"]) == ["b"]
