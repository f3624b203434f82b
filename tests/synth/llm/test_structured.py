"""Structured output: what fits is returned, what does not is repaired, and then it is data."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from records.errors import ItemError
from synth.llm.structured import InvalidOutputError
from synth.llm.wire.json_text import NotJsonError, value_in
from tests.synth.llm.server import Body, answer, serve
from tests.synth.llm.test_client import HELLO, llm_of, role

PET = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
GOOD = '{"name": "Rex", "age": 3}'


def ask(
    contents: list[Body],
    folder: Path,
    *,
    runs: int = 1,
    schema: dict[str, Any] = PET,
    check: Callable[[Any], None] | None = None,
    **changes: Any,
) -> tuple[list[Any], list[Body]]:
    """The values (or the ItemError) of `runs` same requests, and what the server was sent."""

    async def run() -> tuple[list[Any], list[Body]]:
        values: list[Any] = []
        async with serve(lambda number, _: contents[number]) as server:
            for _ in range(runs):
                async with llm_of(role(server.url, **changes), folder) as llm:
                    try:
                        value = await llm.structured(
                            "agent",
                            HELLO,
                            item="i",
                            step="0",
                            name="pet",
                            schema=schema,
                            check=check,
                        )
                    except ItemError as error:
                        value = error
                    values.append(value)
            return values, server.requests

    return asyncio.run(run())


@pytest.mark.parametrize(
    "content", [GOOD, f" {GOOD}\n", f"```json\n{GOOD}\n```", f"```\n{GOOD}\n```"]
)
def test_value_that_fits_is_returned(content: str, tmp_path: Path) -> None:
    values, requests = ask([answer(content)], tmp_path)
    assert values == [{"name": "Rex", "age": 3}]
    assert requests[0]["response_format"]["json_schema"] == {"name": "pet", "schema": PET}


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (answer('{"name": "Rex", "age": "three"}'), 'at age: "three" is not of type'),
        (answer('{"name": "Rex"}'), 'at the whole value: "age" is a required property'),
        (answer("Sure! Here is your pet."), "it is not JSON: Expecting value"),
        (answer('{"name": "Rex", "age": NaN}'), "NaN is no JSON number"),
        (answer('{"name": "\\ud800", "age": 3}'), "surrogates not allowed"),
        (answer(None), "it is not JSON"),
    ],
)
def test_model_is_shown_its_answer_and_the_error(bad: Body, problem: str, tmp_path: Path) -> None:
    values, requests = ask([bad, answer(GOOD)], tmp_path)
    assert values == [{"name": "Rex", "age": 3}]
    shown, wish = requests[1]["messages"][-2:]
    assert shown["role"] == "assistant"
    assert shown["content"] == (bad["choices"][0]["message"]["content"] or "(empty answer)")
    assert wish["role"] == "user"
    assert problem in wish["content"]


def test_answer_that_stays_cut_is_asked_to_be_briefer(tmp_path: Path) -> None:
    cut = answer('{"name": "Re', finish_reason="length")
    values, requests = ask([cut, cut, cut, answer(GOOD)], tmp_path)
    assert values == [{"name": "Rex", "age": 3}]
    assert [body["max_tokens"] for body in requests] == [50, 100, 200, 50]
    assert "be briefer" in requests[3]["messages"][-1]["content"]


def test_answer_that_stays_wrong_is_an_item_error_and_stays_paid(tmp_path: Path) -> None:
    wrong = [answer(f'{{"name": {n}}}') for n in range(3)]
    values, requests = ask(wrong, tmp_path, runs=2)
    assert [value.reason for value in values] == ["invalid_output"] * 2
    assert "pet by agent at 0 for i" in str(values[0])
    assert str(values[0]) == str(values[1])
    assert len(requests) == 3  # the second run met the invalid answers in the journal


@pytest.mark.parametrize("content", ["[" * 100_000, "9" * 5000 + "e", '{"a": 1'])
def test_hostile_text_is_an_invalid_answer(content: str) -> None:
    with pytest.raises(NotJsonError):
        value_in(content, jsonschema_rs.validator_for({}))


def test_schema_that_refers_elsewhere_is_refused(tmp_path: Path) -> None:
    async def run() -> None:
        async with llm_of(role("http://127.0.0.1:9/v1"), tmp_path) as llm:
            schema = {"$ref": "http://127.0.0.1:9/schema.json"}
            with pytest.raises(Exception, match="may not refer to other documents"):
                await llm.structured("agent", HELLO, item="i", step="0", name="x", schema=schema)

    asyncio.run(run())


HOME: dict[str, Any] = {
    "type": "object",
    "properties": {
        "street": {"type": "string"},
        "pets": {"type": "array", "items": {"$ref": "#/$defs/pet"}},
    },
    "required": ["street", "pets"],
    "additionalProperties": False,
    "$defs": {"pet": PET},
}
REX, BO = {"name": "Rex", "age": 3}, {"name": "Bo", "age": 4}
WRONG = {"street": "Elm", "pets": [REX, BO | {"age": "four"}]}
RIGHT = {"street": "Elm", "pets": [REX, BO]}


def said(*values: Any) -> list[Body]:
    return [answer(json.dumps(value)) for value in values]


@pytest.mark.parametrize("repaired", [BO, RIGHT], ids=["the part", "the whole"])
def test_only_the_wrong_part_is_asked_for_again(repaired: Any, tmp_path: Path) -> None:
    values, requests = ask(said(WRONG, repaired), tmp_path, schema=HOME)
    assert values == [RIGHT]
    asked = requests[1]["response_format"]["json_schema"]["schema"]
    assert {name: asked[name] for name in PET} == PET
    talk = requests[1]["messages"]
    assert talk[:-2] == requests[0]["messages"]
    assert [message["role"] for message in talk[-2:]] == ["assistant", "user"]
    assert "`pets[1]`" in talk[-1]["content"]


def test_part_that_is_still_wrong_is_asked_for_again(tmp_path: Path) -> None:
    values, requests = ask([*said(WRONG, BO | {"age": None}), *said(BO)], tmp_path, schema=HOME)
    assert values == [RIGHT]
    assert "at pets[1].age: null" in requests[2]["messages"][-1]["content"]


def test_part_is_still_wanted_after_an_answer_without_json(tmp_path: Path) -> None:
    values, requests = ask([*said(WRONG), answer("Sorry!"), *said(BO)], tmp_path, schema=HOME)
    assert values == [RIGHT]
    assert requests[2]["response_format"] == requests[1]["response_format"]


def test_two_wrong_parts_are_mended_one_after_the_other(tmp_path: Path) -> None:
    wrong = {"street": "Elm", "pets": [REX | {"age": "x"}, BO | {"age": "y"}]}
    values, _ = ask(said(wrong, REX, BO), tmp_path, schema=HOME)
    assert values == [RIGHT]


def test_fault_of_the_whole_and_fault_of_a_check_ask_for_the_whole(tmp_path: Path) -> None:
    def check(value: Any) -> None:
        if value["street"] != "Elm":
            raise InvalidOutputError("the street must be Elm")

    values, requests = ask(
        said({"pets": [REX, BO]}, RIGHT | {"street": "Oak"}, RIGHT),
        tmp_path,
        schema=HOME,
        check=check,
    )
    assert values == [RIGHT]
    forms = [body["response_format"]["json_schema"]["schema"] for body in requests]
    assert forms == [HOME] * 3
    assert "the street must be Elm" in requests[2]["messages"][-1]["content"]


def test_answer_that_a_server_took_for_reasoning_is_read(tmp_path: Path) -> None:
    values, requests = ask([answer("", reasoning_content=GOOD)], tmp_path)
    assert (values, len(requests)) == ([REX], 1)


def test_draft_in_reasoning_that_was_cut_is_no_answer(tmp_path: Path) -> None:
    draft = f"Perhaps {json.dumps(BO)}? No"
    cut = answer(f"<think>{draft}", finish_reason="length")
    beside = answer("", reasoning_content=draft, finish_reason="length")
    values, requests = ask([cut, beside, answer(GOOD)], tmp_path)
    assert (values, len(requests)) == ([REX], 3)


@pytest.mark.parametrize("structured", ["json_object", "tool", "prompt"])
def test_part_is_asked_for_in_every_form(structured: str, tmp_path: Path) -> None:
    profile = {"structured": structured}
    values, requests = ask(said(WRONG, BO), tmp_path, schema=HOME, profile=profile)
    assert values == [RIGHT]
    if structured == "tool":
        (tool,) = requests[1]["tools"]
        asked = tool["function"]["parameters"]
    else:
        asked = json.loads(requests[1]["messages"][-1]["content"].split("```json")[1].strip("`\n"))
    assert {name: asked[name] for name in PET} == PET
