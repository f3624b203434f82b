"""Rows of anybody: every common form is the same conversation, and what is none is told."""

import json
from typing import Any

import pytest

from trainer.data.conversations import TrainingConversation, conversation_of

ASKED = {"role": "user", "content": "Is it open?"}
SAID = {"role": "assistant", "content": "It is open."}
FUNCTION = {"name": "look", "parameters": {"type": "object", "properties": {"at": {}}}}
TOOL = {"type": "function", "function": FUNCTION}
CALLED = {
    "role": "assistant",
    "content": "",
    "tool_calls": [
        {"type": "function", "function": {"name": "look", "arguments": '{"at": "door"}'}, "id": "a"}
    ],
}
RESULT = {"role": "tool", "content": "shut", "tool_call_id": "a"}


def read(**row: Any) -> TrainingConversation:
    made = conversation_of(row)
    assert made is not None
    return made


def named(message: dict[str, Any], call_id: str) -> dict[str, Any]:
    """With its one call, or what it answers, under another id."""
    if "tool_calls" in message:
        return message | {"tool_calls": [message["tool_calls"][0] | {"id": call_id}]}
    return message | {"tool_call_id": call_id}


@pytest.mark.parametrize("text", ["[INST] go", "{name}, go", '{"a": 1}', "[1, 2]", "[]", '"go"'])
def test_words_that_look_like_json_are_words(text: str) -> None:
    made = read(prompt=text, completion=text)
    assert [m["content"] for m in made.messages] == [text, text]
    assert made.train_turns == [False, True]


def test_calls_are_read_in_every_common_form() -> None:
    expected = read(messages=[ASKED, CALLED, RESULT, SAID]).messages
    function = CALLED["tool_calls"][0]["function"]
    flat = {"name": "look", "arguments": {"at": "door"}}
    for call in (
        {"id": "a", "function": function | {"arguments": {"at": "door"}}},
        {"id": "a", **flat},
    ):
        said = {"role": "assistant", "content": None, "tool_calls": [call]}
        assert read(messages=[ASKED, said, RESULT, SAID]).messages == expected
        as_text = said | {"tool_calls": json.dumps([call])}
        assert read(messages=[ASKED, as_text, RESULT, SAID]).messages == expected
    turns = [
        {"from": "human", "value": "Is it open?"},
        {"from": "function_call", "value": json.dumps(flat)},
        {"from": "observation", "value": "shut"},
        {"from": "gpt", "value": "It is open."},
    ]
    found = named(RESULT, "call-0") | {"name": "look"}
    wanted = [ASKED, named(CALLED, "call-0"), found, SAID]
    assert read(conversations=turns).messages == wanted
    assert read(conversations=[ASKED, SAID]).messages == read(messages=[ASKED, SAID]).messages


def test_results_without_an_id_answer_the_oldest_open_call_of_their_name() -> None:
    calls = [{"name": "look", "arguments": {}}, {"name": "open", "arguments": {}}]
    said = {"role": "assistant", "tool_calls": calls}
    results = [{"role": "tool", "name": "open", "content": "1"}, {"role": "tool", "content": "2"}]
    made = read(messages=[ASKED, said, *results, said, *results]).messages
    assert [(m["tool_call_id"], m["name"]) for m in made if m["role"] == "tool"] == [
        ("call-1", "open"),
        ("call-0", "look"),
        ("call-3", "open"),
        ("call-2", "look"),
    ]


def test_a_system_column_is_not_lost() -> None:
    made = read(system="Be brief.", messages=[ASKED, SAID], train_turns=[False, True])
    assert [m["role"] for m in made.messages] == ["system", "user", "assistant"]
    assert made.train_turns == [False, False, True]
    own = [{"role": "system", "content": "Be long."}, ASKED]
    assert read(system="Be brief.", messages=own).messages == own


def test_a_bare_function_is_a_tool() -> None:
    for tools in ([FUNCTION], [TOOL], json.dumps([FUNCTION])):
        assert read(messages=[ASKED], tools=tools).tools == [TOOL]


def test_a_row_without_a_conversation_is_none() -> None:
    assert conversation_of({"text": "words"}) is None
    assert conversation_of({"messages": None, "text": "words"}) is None
    assert read(messages=[]).messages == []


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"messages": "{broken"}, "messages is text that is no JSON"),
        ({"messages": {"role": "user"}}, r"messages is .* \(dict\), not a list"),
        ({"messages": ["hello"]}, r"a message is 'hello' \(str\)"),
        ({"messages": [{"role": "narrator"}]}, "role 'narrator'; allowed: system"),
        ({"messages": [{"content": "x"}]}, "role None"),
        ({"messages": [{"role": "user", "content": 5}]}, r"'5' \(int\), not text"),
        ({"messages": [SAID | {"tool_calls": [{"id": "x"}]}]}, "needs name and arguments"),
        ({"messages": [SAID | {"tool_calls": {"name": "f"}}]}, "tool_calls is"),
        ({"conversations": [{"from": "robot", "value": ""}]}, "from 'robot'; allowed: human"),
        ({"prompt": 5, "completion": "x"}, "not a list"),
        ({"messages": [ASKED, SAID], "train_turns": [True]}, "1 flags for 2 messages"),
        ({"messages": [ASKED], "tools": ["f"]}, "a tool is 'f'"),
        ({"messages": [ASKED], "tools": [{"name": "f", "parameters": "{}"}]}, "no schema"),
        (
            {"messages": [ASKED], "tools": [{"name": "f", "parameters": {"properties": [1]}}]},
            "no schema of an object",
        ),
    ],
)
def test_what_is_no_conversation_is_told(row: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        conversation_of(row)
