"""What the judge is shown of an episode, and what counts as a quote of it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth.judging.transcript import (
    FILES_ALONE,
    as_read,
    changes_of,
    instructions_of,
    is_quoted,
    material_of,
    quotable,
    tools_shown,
    transcript_of,
)
from tests.synth.clinic import CANCEL, calls


def test_a_transcript_has_no_system_prompt_ids_or_reasoning() -> None:
    messages = [
        {"role": "system", "content": "secret"},
        calls(CANCEL) | {"reasoning_content": "hidden"},
        {"role": "tool", "tool_call_id": "call_0", "name": "cancel_appointment", "content": "{}"},
    ]
    assert transcript_of(messages) == [
        {
            "role": "assistant",
            "content": "",
            "calls": [{"name": CANCEL[0], "arguments": json.dumps(CANCEL[1])}],
        },
        {"role": "tool", "name": "cancel_appointment", "content": "{}"},
    ]
    assert instructions_of(messages) == "secret"


def call(name: str, diff: list[dict[str, Any]], actor: str = "agent") -> dict[str, Any]:
    return {"name": name, "actor": actor, "state_diff": diff, "policy_violations": ["rule"]}


def test_changes_say_who_changed_what_and_leave_out_what_changed_nothing() -> None:
    change = {"op": "update", "entity": "boat", "id": "B-1", "before": {"n": 1}, "after": {"n": 2}}
    found = changes_of([call("look", []), call("rent", [change]), call("moor", [change], "user")])
    assert found == [
        {"tool": "rent", "by": "agent", "changed": [change]},
        {"tool": "moor", "by": "user", "changed": [change]},
    ]


@pytest.mark.parametrize(
    ("by", "is_told"), [("mcp", True), ("cassette", True), ("state_machine", False)]
)
def test_beside_the_changes_of_a_real_server_stands_what_is_not_seen(
    by: str, *, is_told: bool
) -> None:
    made = {**call("post", []), "tool_call_id": "c", "executed_by": by}
    changes = material_of([], [made], []).shown["changes"]
    assert (changes == [FILES_ALONE]) is is_told


def test_of_tools_the_name_and_the_description_are_shown() -> None:
    tool = {"name": "rent", "description": "Rent out.", "input_schema": {}, "source": "mcp"}
    assert tools_shown([tool]) == [{"name": "rent", "description": "Rent out."}]


def test_what_is_said_of_parameters_and_their_bounds_are_shown() -> None:
    days = {
        "type": "integer",
        "description": "For how long, such as 3.5. Days off count.",
        "minimum": 1,
        "maximum": 14,
    }
    schema = {"properties": {"days": days, "silent": {"type": "string"}}}
    [shown] = tools_shown([{"name": "rent", "description": "Rent out.", "input_schema": schema}])
    assert shown["parameters"] == {"days": "For how long. Days off count. (minimum 1, maximum 14)"}


@pytest.mark.parametrize(
    ("told", "left"),
    [
        ("Email address, such as anika.vogel@mail.example.", "Email address."),
        ("Id of the order (e.g. OR-1001) to move.", "Id of the order to move."),
        ("City, e.g., Paris.", "City."),
        ("City. Example: Paris", "City."),
        (
            "What is paid, such as 12.5, at most what is owed.",
            "What is paid, at most what is owed.",
        ),
        ("Share, such as 1.5. Unit: %.", "Share. Unit: %."),
        ("Amount, from 5 to what is owed.", "Amount, from 5 to what is owed."),
    ],
)
def test_examples_are_left_out_whole_and_limits_stay(told: str, left: str) -> None:
    schema = {"properties": {"it": {"type": "string", "description": told}}}
    [shown] = tools_shown([{"name": "rent", "description": "Rent out.", "input_schema": schema}])
    assert shown["parameters"] == {"it": left}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('{"ok": true,\n "price": 20.0}', {"ok": True, "price": 20.0}),
        ("[]", []),
        ('{"a": 1, "a": 2}', '{"a": 1, "a": 2}'),
        ('{"total": 1e3}', '{"total": 1e3}'),
        ("20", "20"),
        ("{broken", "{broken"),
        ("[" * 100_000, "[" * 100_000),
    ],
)
def test_results_and_arguments_are_read_as_values_where_nothing_gets_lost(
    text: str, shown: Any
) -> None:
    entries = [
        {"role": "user", "content": text},
        {"role": "assistant", "content": "", "calls": [{"name": "rent", "arguments": text}]},
        {"role": "tool", "name": "rent", "content": text},
    ]
    said, made, result = as_read(entries)
    assert said == entries[0]
    assert made == {"role": "assistant", "calls": [{"name": "rent", "arguments": shown}]}
    assert result == {"role": "tool", "name": "rent", "content": shown}
    assert is_quoted(f'"content": {json.dumps(shown)}', quotable("", [], [], entries))


@pytest.mark.parametrize(
    ("quote", "stands"), [("[]", True), ("[ ]", False), ("{}", False), ("", False), ("on", False)]
)
def test_a_result_that_is_empty_as_a_whole_can_be_quoted(quote: str, stands: bool) -> None:
    entries = [
        {"role": "assistant", "content": "on {} it is"},
        {"role": "tool", "name": "find", "content": "[]"},
        {"role": "tool", "name": "find", "content": "on it"},
        {"role": "tool", "name": "find", "content": ""},
    ]
    assert is_quoted(quote, quotable("", [], [], entries)) == stands


def test_a_change_is_shown_without_what_it_does_not_have() -> None:
    made = {"op": "insert", "entity": "boat", "id": "B-1", "before": None, "after": {"n": 2}}
    [found] = changes_of([call("build", [made])])
    assert found["changed"] == [{"op": "insert", "entity": "boat", "id": "B-1", "after": {"n": 2}}]


SAID = quotable(
    "You rent boats.",
    [{"name": "rent", "description": "Rent out a boat."}],
    [],
    transcript_of(
        [
            {"role": "user", "content": "Rent me the \u201cHeron\u201d,\nplease."},
            {"role": "assistant", "content": "**Price:** 20 EUR, on Friday... by noon."},
        ]
    ),
)


@pytest.mark.parametrize(
    "quote",
    [
        "You rent boats",
        "rent me the 'heron'",
        "Heron', please",
        "Price: 20 EUR",
        "*Price:* 20 ... Friday",
        "Friday... by",
        "Friday\u2026 by",
        '"description": "Rent out a boat."',
    ],
)
def test_spelling_and_emphasis_make_no_difference_to_a_quote(quote: str) -> None:
    assert is_quoted(quote, SAID)


@pytest.mark.parametrize(
    "quote",
    [
        "Price: 21 EUR",
        "the Gull",
        "e",
        "it",
        "...",
        "\u2026",
        "** **",
        "20 ... Saturday",
        "Friday ... Price: 20",
        "Rent me ... on Friday",
        "e...e...e...e",
        "Price: 20 ... on",
    ],
)
def test_other_words_and_what_could_stand_anywhere_are_no_quote(quote: str) -> None:
    assert not is_quoted(quote, SAID)


@given(st.text(alphabet="abcd efg.", min_size=12, max_size=60), st.data())
def test_every_long_enough_part_of_a_text_is_a_quote_of_it(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text) - 8))
    part = text[start : start + 8]
    if "..." not in part and sum(map(str.isalnum, part)) >= 4:
        assert is_quoted(part, quotable(text, [], [], []))
    assert not is_quoted(f"{part} and zebras", quotable(text, [], [], []))


def test_messages_without_content_in_parts_and_without_a_name_are_read() -> None:
    messages = [
        {"role": "system", "content": None},
        {"role": "user", "content": [{"type": "text", "text": "Rent"}, {"type": "image_url"}]},
        calls(CANCEL),
        {"role": "tool", "tool_call_id": "call_0", "content": None},
        {"role": "tool", "content": "{}"},
    ]
    assert instructions_of(messages) == ""
    told = transcript_of(messages)
    assert [entry["content"].strip() for entry in told] == ["Rent", "", "", "{}"]
    assert [entry.get("name") for entry in told] == [None, None, CANCEL[0], ""]


def test_what_a_server_asks_during_a_call_stands_with_its_result_and_can_be_quoted() -> None:
    form: dict[str, Any] = {
        "method": "elicitation/create",
        "params": {"message": "For how many days?", "requestedSchema": {"properties": {}}},
        "result": {"action": "accept", "content": {"days": 3}},
        "refusal": None,
    }
    refused: dict[str, Any] = {
        "method": "sampling/createMessage",
        "params": {"messages": [{"role": "user", "content": {"type": "text", "text": "Sum up"}}]},
        "result": None,
        "refusal": "sampling is switched off",
    }
    messages = [
        calls(CANCEL),
        {"role": "tool", "tool_call_id": "call_0", "name": "cancel_appointment", "content": "{}"},
    ]
    rows: list[dict[str, Any]] = [
        {"tool_call_id": "call_0", "exchanges": [form, refused]},
        {"tool_call_id": "call_1", "exchanges": None},
    ]
    transcript = transcript_of(messages, rows)
    assert transcript[1]["asked_meanwhile"] == [
        {
            "of": "user",
            "question": "For how many days?",
            "answer": {"action": "accept", "content": {"days": 3}},
        },
        {
            "of": "model",
            "question": refused["params"]["messages"],
            "answer": "sampling is switched off",
        },
    ]
    assert as_read(transcript)[1]["asked_meanwhile"] == transcript[1]["asked_meanwhile"]
    said = quotable("", [], [], transcript)
    by_user = [text for text in said if text.of == "user"]
    assert is_quoted('"days": 3', by_user)
    assert not is_quoted("For how many days?", by_user)
    assert is_quoted("For how many days?", said)
