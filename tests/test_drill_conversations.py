"""Made-up conversations: what is learnt of them can be read in them, and only that."""

import json
from itertools import islice, pairwise
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from benchmarks.drill_conversations import NO_TOOL, drill_conversations

WORDS = [f"word{chr(97 + a)}{chr(97 + b)}" for a in range(26) for b in range(12)]

Row = dict[str, Any]


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return list(drill_conversations(120, WORDS, seed=3))


def learnt_calls(row: Row) -> list[tuple[int, str, Row]]:
    """Place, name and arguments of every call that is learnt."""
    return [
        (place, call["function"]["name"], json.loads(call["function"]["arguments"]))
        for place, (message, flag) in enumerate(
            zip(row["messages"], row["train_turns"], strict=True)
        )
        for call in message.get("tool_calls", [])
        if flag
    ]


def test_a_learnt_call_is_of_a_declared_tool_and_fits_its_schema(rows: list[Row]) -> None:
    for row in rows:
        schemas = {t["function"]["name"]: t["function"]["parameters"] for t in row["tools"]}
        for _, name, arguments in learnt_calls(row):
            Draft202012Validator(schemas[name]).validate(arguments)
            assert arguments.keys() <= schemas[name]["properties"].keys()


def test_what_a_learnt_call_says_was_said_before_it(rows: list[Row]) -> None:
    """Ids and codes word for word; nothing has to be guessed."""
    for row in rows:
        for place, _, arguments in learnt_calls(row):
            before = "\n".join(message["content"] for message in row["messages"][:place])
            for value in arguments.values():
                if isinstance(value, str) and "T" not in value and value[:2] != "20":
                    assert value in before


def test_only_the_agent_is_learnt_and_no_call_that_fails(rows: list[Row]) -> None:
    failed = 0
    for row in rows:
        messages, flags = row["messages"], row["train_turns"]
        assert all(
            m["role"] == "assistant" for m, flag in zip(messages, flags, strict=True) if flag
        )
        for number, (call, answer) in enumerate(pairwise(messages)):
            if "tool_calls" in call and "error" in json.loads(answer["content"]):
                failed += 1
                assert not flags[number]
    assert failed


def test_an_answer_tells_what_came_back_last(rows: list[Row]) -> None:
    for row in rows:
        for answer, reply in pairwise(row["messages"]):
            if answer["role"] == "tool" and reply["content"].startswith("Done"):
                for value in _leaves(json.loads(answer["content"])):
                    told = isinstance(value, str) and value[:2] != "20"
                    assert not told or value in reply["content"]


def test_a_refusal_names_a_tool_that_is_not_declared(rows: list[Row]) -> None:
    refused = 0
    for row in rows:
        wishes = [t["function"]["description"].partition(".")[0].lower() for t in row["tools"]]
        for request, reply in pairwise(row["messages"]):
            if reply["content"] == NO_TOOL:
                refused += 1
                assert not any(wish in request["content"].lower() for wish in wishes)
    assert refused


def test_a_seed_gives_the_same_again_and_another_gives_others() -> None:
    def first(seed: int) -> list[Row]:
        return list(islice(drill_conversations(9, WORDS, seed), 5))

    assert first(1) == first(1) != first(2)


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for part in value.values() for leaf in _leaves(part)]
    if isinstance(value, list):
        return [leaf for part in value for leaf in _leaves(part)]
    return [value]
