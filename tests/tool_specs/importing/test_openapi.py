"""OpenAPI 3 documents: each operation a tool, all that a caller gives in one schema."""

from typing import Any

import pytest

from records.errors import ConfigError
from records.tables.schemas import Row
from tool_specs.importing.openapi import listing_of
from tool_specs.importing.tool_lists import ToolListSource, rows_of_answer

PET = {
    "type": "object",
    "required": ["name", "id"],
    "properties": {
        "id": {"type": "integer", "readOnly": True},
        "name": {"type": "string", "nullable": True},
        "weight": {"type": "number", "minimum": 0, "exclusiveMinimum": True},
        "petId": {"type": "string"},
    },
}
DOCUMENT: dict[str, Any] = {
    "openapi": "3.0.3",
    "info": {"title": "Pet shop", "version": "1", "license": {"name": "MIT License"}},
    "paths": {
        "/pets/{petId}": {
            "parameters": [{"$ref": "#/components/parameters/petId"}],
            "get": {
                "summary": "Get a pet.",
                "description": "Returns its card.",
                "parameters": [
                    {"name": "verbose", "in": "query", "schema": {"type": "boolean"}},
                    {"name": "X-Trace", "in": "header", "schema": {"type": "string"}},
                    {"name": "Accept", "in": "header", "schema": {"type": "string"}},
                    {"name": "session", "in": "cookie", "schema": {"type": "string"}},
                ],
                "responses": {
                    "404": {"description": "none"},
                    "200": {"$ref": "#/components/responses/pet"},
                },
            },
            "put": {
                "operationId": "pets.update",
                "requestBody": {
                    "content": {
                        "application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}
                    }
                },
            },
            "delete": {"operationId": "deletePet"},
        },
        "/pets": {
            "post": {
                "operationId": "addPets",
                "requestBody": {
                    "description": "Pets to add.",
                    "content": {
                        "application/json": {
                            "schema": {
                                "type": "array",
                                "items": {"$ref": "#/components/schemas/Pet"},
                            }
                        }
                    },
                },
            }
        },
        "/photo": {"post": {"requestBody": {"content": {"image/png": {}}}}},
        "/tree": {
            "post": {
                "requestBody": {
                    "content": {
                        "application/json": {"schema": {"$ref": "#/components/schemas/Tree"}}
                    }
                }
            }
        },
        "/far": {"get": {"parameters": [{"$ref": "https://127.0.0.1:1/p"}]}},
    },
    "components": {
        "parameters": {
            "petId": {
                "name": "petId",
                "in": "path",
                "required": True,
                "description": "Id of the pet.",
                "schema": {"type": "integer"},
            }
        },
        "responses": {
            "pet": {
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}
            }
        },
        "schemas": {
            "Pet": PET,
            "Tree": {
                "type": "object",
                "properties": {"child": {"$ref": "#/components/schemas/Tree"}},
            },
        },
    },
}
SOURCE = ToolListSource(server="pets", category="x", may_write=True)


def rows_of(document: dict[str, Any]) -> dict[str, Row]:
    listing = listing_of(document, SOURCE)
    rows = rows_of_answer(listing.tools, listing.source, listing.dialect)
    return {row["annotations"]["http"]: row for row in rows}


@pytest.fixture(scope="module")
def rows() -> dict[str, Row]:
    return rows_of(DOCUMENT)


def test_parameters_of_path_query_and_header_are_one_object(rows: dict[str, Row]) -> None:
    get = rows["GET /pets/{petId}"]
    assert get["name"] == "get_pets_petId"
    assert get["description"] == "Get a pet.\nReturns its card."
    assert get["annotations"]["readOnlyHint"] is True
    assert get["drop_reason"] is None
    assert get["input_schema"] == {
        "type": "object",
        "properties": {
            "petId": {"type": "integer", "description": "Id of the pet."},
            "verbose": {"type": "boolean"},
            "X-Trace": {"type": "string"},
        },
        "required": ["petId"],
    }
    assert get["output_schema"]["properties"]["weight"] == {"type": "number", "exclusiveMinimum": 0}


def test_members_of_a_json_body_stand_beside_the_parameters(rows: dict[str, Row]) -> None:
    put = rows["PUT /pets/{petId}"]
    assert put["name"] == "pets_update"
    assert put["annotations"]["originalName"] == "pets.update"
    assert put["annotations"]["destructiveHint"] is False
    schema = put["input_schema"]
    assert set(schema["properties"]) == {"petId", "name", "weight", "body_petId"}
    assert schema["properties"]["name"] == {"type": ["string", "null"]}
    assert schema["required"] == ["petId", "name"]


def test_a_body_that_is_no_object_is_one_argument(rows: dict[str, Row]) -> None:
    schema = rows["POST /pets"]["input_schema"]
    assert schema["required"] == ["body"]
    assert schema["properties"]["body"]["type"] == "array"
    assert schema["properties"]["body"]["description"] == "Pets to add."


def test_operations_that_cannot_be_called_with_json_say_why(rows: dict[str, Row]) -> None:
    assert rows["DELETE /pets/{petId}"]["drop_reason"] is None
    assert rows["POST /photo"]["drop_reason"] == "not_json_body"
    assert rows["POST /tree"]["drop_reason"] == "recursive_schema"
    assert rows["GET /far"]["drop_reason"] == "remote_reference"
    assert len(rows) == 7


def test_paths_that_cannot_be_read_cost_the_others_nothing() -> None:
    paths = {
        "/a": {"$ref": "https://127.0.0.1:1/"},
        "/b/{id}": {"$ref": "#/paths/~1b~1{id}"},
        "/c": 5,
        "/d": {"get": {}},
    }
    found = rows_of({"openapi": "3.1.0", "paths": paths})
    assert {http: (row["name"], row["drop_reason"]) for http, row in found.items()} == {
        "/a": ("path_a", "remote_reference"),
        "/b/{id}": ("path_b_id", "recursive_schema"),
        "/c": ("path_c", "broken_reference"),
        "GET /d": ("get_d", None),
    }


def test_version_3_1_reads_schemas_as_2020_12() -> None:
    schema = {"type": "string", "nullable": True, "const": "a"}
    query = {"name": "q", "in": "query", "schema": schema}
    paths = {"/a": {"get": {"parameters": [query]}}}
    found = rows_of({"openapi": "3.1.0", "paths": paths})["GET /a"]["input_schema"]
    assert found["properties"]["q"] == {"type": "string", "const": "a"}


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"swagger": "2.0", "paths": {}}, "version 2.0; convert it to OpenAPI 3"),
        ({"openapi": "4.0.0", "paths": {}}, "version 4.0.0"),
        ({"openapi": "3.1.0"}, "without paths"),
    ],
)
def test_what_is_no_such_document_is_refused(document: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        listing_of(document, SOURCE)
