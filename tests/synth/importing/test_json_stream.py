"""A JSON document in parts: the same values as from the whole, wherever its bytes are cut."""

import io
import json
from typing import Any

import pytest

from synth.importing import json_stream
from synth.importing.json_stream import (
    JsonPart,
    JsonScanner,
    list_of_member,
    object_in,
    parts_of_list,
)

VALUES: list[Any] = [
    {"a": 'x"\\\n]},[', "b": [1, {"c": None}]},
    "str\\",
    3.5,
    None,
    [],
    {},
    {"é": "\u2028😀"},
    [[["]"]]],
]


def parts(document: bytes) -> list[JsonPart]:
    scanner = JsonScanner(io.BytesIO(document))
    assert scanner.peek() == b"["
    return list(parts_of_list(scanner))


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 1 << 18])
@pytest.mark.parametrize("indent", [None, 1])
def test_the_parts_are_the_values(
    chunk: int, indent: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_stream, "CHUNK_BYTES", chunk)
    text = json.dumps(VALUES, indent=indent, ensure_ascii=False)
    found = parts(text.encode())
    assert [json.loads(part.text or b"") for part in found] == VALUES
    assert all(part.is_whole for part in found)
    if indent:
        starts = [text.split("\n")[part.line - 1].strip().encode() for part in found]
        assert all(
            (part.text or b"")[:1] == start[:1] for part, start in zip(found, starts, strict=True)
        )


@pytest.mark.parametrize("chunk", [1, 5, 1 << 18])
def test_a_document_that_is_cut_off_says_so_and_gives_what_was_whole(
    chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_stream, "CHUNK_BYTES", chunk)
    document = json.dumps(VALUES, ensure_ascii=False).encode()
    for end in range(1, len(document)):
        *whole, last = parts(document[:end])
        assert not last.is_whole
        assert [json.loads(part.text or b"") for part in whole] == VALUES[: len(whole)]


def test_what_is_no_json_costs_the_values_after_it_nothing() -> None:
    found = parts(b'[{\'a\': [1, 2]}, {"b": nope}, {"c": 3}]')
    assert [part.text for part in found] == [b"{'a': [1, 2]}", b'{"b": nope}', b'{"c": 3}']


def test_a_value_that_is_too_long_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "LONGEST_BYTES", 50)
    monkeypatch.setattr(json_stream, "CHUNK_BYTES", 16)
    found = parts(json.dumps([{"a": 1}, {"b": 'x"' * 100}, {"c": 2}]).encode())
    assert [part.text for part in found] == [b'{"a": 1}', None, b'{"c": 2}']
    assert found[1].size == len(json.dumps({"b": 'x"' * 100}))


@pytest.mark.parametrize("order", [["info", "simulations", "tasks"], ["simulations", "info"]])
def test_members_are_found_in_any_order_and_the_large_one_is_not_held(order: list[str]) -> None:
    values = {"info": {"a": [1, "}"]}, "simulations": [{"x": 1}, {"y": "]"}], "tasks": []}
    document = json.dumps({name: values[name] for name in order}).encode()
    found = object_in(JsonScanner(io.BytesIO(document)), ("info", "tasks"))
    assert list(found.members) == order
    assert found.members["simulations"] is None
    assert json.loads(found.members["info"] or b"") == values["info"]
    assert found.is_alone
    elements = list_of_member(JsonScanner(io.BytesIO(document)), "simulations")
    assert [json.loads(part.text or b"") for part in elements] == values["simulations"]


def test_lines_of_objects_are_told_from_one_object() -> None:
    assert not object_in(JsonScanner(io.BytesIO(b'{"a": 1}\n{"a": 2}\n')), ()).is_alone
    assert object_in(JsonScanner(io.BytesIO(b'\xef\xbb\xbf{"a": 1}\n ')), ()).is_alone
