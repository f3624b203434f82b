"""Made-up conversations: what is learnt of them can be read in them, and only that."""

import json
from itertools import islice, pairwise
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from benchmarks.drill_conversations import NO_TOOL, _told, drill_conversations

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


def wishes(row: Row) -> list[list[tuple[Row, bool]]]:
    """The messages from each request on, each with whether it is learnt."""
    found: list[list[tuple[Row, bool]]] = []
    for message, flag in zip(row["messages"], row["train_turns"], strict=True):
        if message["role"] == "user" and not message["content"].startswith("The "):
            found.append([])
        if found:
            found[-1].append((message, flag))
    return found


def test_a_request_tells_the_record_that_is_acted_on_from_those_found_with_it(
    rows: list[Row],
) -> None:
    several = 0
    for (request, _), *rest in (wish for row in rows for wish in wishes(row)):
        results = [json.loads(m["content"]) for m, _ in rest if m["role"] == "tool"][:1]
        records = next((v for r in results for v in r.values() if isinstance(v, list)), [])
        learnt = [call for m, flag in rest if flag for call in m.get("tool_calls", [])]
        given = _leaves([json.loads(call["function"]["arguments"]) for call in learnt])
        for record in records if len(records) > 1 else []:
            if not any(n.endswith("_id") and value in given for n, value in record.items()):
                continue
            several += 1
            others = [other for other in records if other is not record]
            assert any(
                f"the {name.replace('_', ' ')} is {_told(value)}" in request["content"]
                and all(other[name] != value for other in others)
                for name, value in record.items()
            )
    assert several


def test_only_what_a_tool_requires_is_asked_back(rows: list[Row]) -> None:
    asked = 0
    for row in rows:
        required = {
            t["function"]["name"]: t["function"]["parameters"]["required"] for t in row["tools"]
        }
        for place, name, _ in learnt_calls(row):
            question = row["messages"][max(place - 2, 0)]["content"]
            if question.startswith("I need to know the "):
                wanted = question.removeprefix("I need to know the ").removesuffix(".")
                asked += 1
                assert wanted in [one.replace("_", " ") for one in required[name]]
    assert asked


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
