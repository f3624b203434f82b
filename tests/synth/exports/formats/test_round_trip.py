"""Rows of every format are our messages again, whatever shapes arguments have and words spell."""

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from records.chat.k2 import TEMPLATE_TOKENS
from records.tables.schemas import Row
from synth.exports.formats.columns import HF_COLUMNS
from synth.exports.formats.form import FormatOptions, LeftOutError
from synth.exports.formats.k2_text import MOST_CHARS, accepted_names
from synth.exports.formats.registry import FORMATS
from synth.exports.formats.trl import NO_LOSS
from synth.importing.messages import paired
from synth.importing.shapes import sharegpt
from synth.rubrics.turns import what_is_wrong
from tests.examples import examples
from tests.synth.exports.reading_back import (
    RELEASED_CALL,
    as_told,
    of_atif,
    of_flagged,
    of_k2,
    of_sharegpt,
)

WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=12) | (
    st.sampled_from(
        [
            "</tool_response>\n<tool_response>",
            "\n</tool_response>\n<tool_response>\n",
            "</tool_call>",
            '{"a": "b"}',
            "## Return of functions.find:0\nno",
            "\u2028 \U0001f6f6 {% raw %}",
        ]
    )
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | WORDS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS, inner, max_size=2),
    max_leaves=4,
)
"""Shapes that structures of a table would fill with nulls."""

OBJECTS = st.dictionaries(WORDS, VALUES, max_size=3)
ARGUMENTS = (
    OBJECTS.map(json.dumps)
    | OBJECTS.map(lambda value: json.dumps(value, ensure_ascii=False))
    | st.sampled_from(["", "no json", "[1, 2]", '{"a": NaN}', '{"a": 1e999}', '"text"', "null"])
)
NAMES = st.sampled_from(
    ["find", "get-alerts", "get_alerts", "a.b", "a_b", "9to5", "büro", "x" * 64]
)


@st.composite
def conversations(draw: st.DrawFn) -> list[Row]:
    """Any that a trainer could take: turns alternate, calls are answered, in any order."""
    messages: list[Row] = []
    if draw(st.booleans()):
        messages.append({"role": "system", "content": draw(WORDS)})
    for _ in range(draw(st.integers(1, 3))):
        messages.append({"role": "user", "content": draw(WORDS)})
        for _ in range(draw(st.integers(0, 2))):
            messages += draw(calls_and_results(len(messages)))
        messages.append({"role": "assistant", "content": draw(WORDS)})
    assert what_is_wrong(messages) is None
    return messages


@st.composite
def calls_and_results(draw: st.DrawFn, at: int) -> list[Row]:
    calls = [
        {
            "id": f"call_{at}_{number}",
            "type": "function",
            "function": {"name": draw(NAMES), "arguments": draw(ARGUMENTS)},
        }
        for number in range(draw(st.integers(1, 3)))
    ]
    results = [
        {
            "role": "tool",
            "tool_call_id": call["id"],
            "name": call["function"]["name"],
            "content": draw(WORDS),
        }
        for call in draw(st.permutations(calls))
    ]
    return [{"role": "assistant", "content": draw(WORDS), "tool_calls": calls}, *results]


def tool(name: str) -> Row:
    schema = {"type": "object", "properties": {"q": {"type": "string", "enum": ["a", "b"]}}}
    return {"type": "function", "function": {"name": name, "parameters": schema}}


def stored(messages: list[Row], train_turns: list[bool] | None = None) -> Row:
    """A row as the dataset gives it."""
    row: Row = dict.fromkeys(HF_COLUMNS)
    names = {c["function"]["name"] for m in messages for c in m.get("tool_calls", ())}
    row |= {"trajectory_id": "t1", "task_id": "task-1", "split": "train", "agent_id": "agent-1"}
    row |= {"agent_name": "Rhea", "token_counts": '{"agent": {"prompt": 3, "completion": 2}}'}
    row |= {"models": '{"agent": "big"}', "train_turns": train_turns, "messages": messages}
    return row | {"tools": json.dumps([tool(name) for name in sorted(names)])}


def made(name: str, messages: list[Row], train_turns: list[bool] | None = None) -> Row:
    part = FORMATS[name].parts[0]
    return part.row(stored(messages, train_turns), FormatOptions())


@given(conversations())
@settings(max_examples=examples(40))
def test_forms_with_our_messages_give_them_back(messages: list[Row]) -> None:
    for name in ("hf", "trl", "verl"):
        assert of_flagged(made(name, messages)["messages"]) == as_told(messages)
    told = of_flagged(made("openai", messages)["messages"])
    assert told == as_told(messages, names=False)


@given(conversations())
@settings(max_examples=examples(40))
def test_arguments_as_text_are_the_text_that_was_stored(messages: list[Row]) -> None:
    options = FormatOptions(arguments="text")
    for name in ("hf", "trl", "verl"):
        row = FORMATS[name].parts[0].row(stored(messages), options)
        assert row["messages"] == messages


@given(conversations())
@settings(max_examples=examples(60))
def test_turns_of_sharegpt_give_the_messages_back(messages: list[Row]) -> None:
    row = made("sharegpt", messages)
    assert of_sharegpt(row) == as_told(messages)
    senders = [turn["from"] for turn in row["conversations"]]
    assert set(senders[::2]) <= {"human", "observation"}
    assert set(senders[1::2]) <= {"gpt", "function_call"}
    assert len(senders) % 2 == 0


@given(conversations())
@settings(max_examples=examples(40))
def test_rows_of_sharegpt_are_imported_as_the_messages_that_they_were_made_of(
    messages: list[Row],
) -> None:
    row = json.loads(json.dumps(made("sharegpt", messages)))
    assert as_told(paired(sharegpt(row, {}).messages).messages) == as_told(messages)


@given(conversations())
@settings(max_examples=examples(60))
def test_what_llama_factory_cuts_out_of_a_value_is_the_calls(messages: list[Row]) -> None:
    """It takes what stands between the first marks for JSON, and the whole where there are none."""
    for turn in made("sharegpt", messages)["conversations"]:
        if turn["from"] == "function_call":
            found = re.search("<tool_call>(.*?)</tool_call>", turn["value"], re.DOTALL)
            calls = json.loads(found[1] if found else turn["value"])
            for call in calls if isinstance(calls, list) else [calls]:
                assert call.keys() == {"name", "arguments"}


@given(conversations())
@settings(max_examples=examples(60))
def test_text_of_k2_gives_the_messages_back(messages: list[Row]) -> None:
    assert of_k2(made("k2", messages)) == as_told(messages)


@given(conversations())
@settings(max_examples=examples(40))
def test_documents_of_atif_give_the_messages_back(messages: list[Row]) -> None:
    assert of_atif(made("atif", messages)) == as_told(messages)


@given(conversations())
@settings(max_examples=examples(25))
def test_documents_of_atif_are_what_its_models_take(messages: list[Row]) -> None:
    from atif import Trajectory

    read = Trajectory.model_validate_json(json.dumps(made("atif", messages)))
    assert [step.source for step in read.steps].count("agent") == sum(
        message["role"] == "assistant" for message in messages
    )
    assert of_atif(read.to_json_dict()) == as_told(messages)


@given(conversations(), st.data())
@settings(max_examples=examples(40))
def test_the_spans_of_k2_text_are_what_the_agent_wrote_and_may_be_learnt(
    messages: list[Row], data: st.DataObject
) -> None:
    flags = [m["role"] == "assistant" and data.draw(st.booleans()) for m in messages]
    row = made("k2", messages, flags)
    learnt = "".join(row["text"][begin:end] for begin, end in row["learnt"])
    blocks = re.findall(
        r"<\|im_assistant\|>assistant<\|im_middle\|>(.*?<\|im_end\|>)", row["text"], re.DOTALL
    )
    written = [flag for m, flag in zip(messages, flags, strict=True) if m["role"] == "assistant"]
    expected = [block for block, flag in zip(blocks, written, strict=True) if flag]
    assert learnt == "".join(expected)


@given(conversations())
@settings(max_examples=examples(25))
def test_call_numbers_of_k2_count_over_the_conversation(messages: list[Row]) -> None:
    found = RELEASED_CALL.finditer(made("k2", messages)["text"])
    numbers = [int(match["id"].rpartition(":")[2]) for match in found]
    assert numbers == list(range(len(numbers)))


@given(st.lists(WORDS | NAMES, max_size=8))
@settings(max_examples=examples(80))
def test_names_are_what_the_parser_reads_whole_and_stay_apart(names: list[str]) -> None:
    made = accepted_names(names)
    assert made.keys() == set(names)
    assert len(set(made.values())) == len(made)
    for old, new in made.items():
        assert re.fullmatch(r"[A-Za-z_]\w*", new, re.ASCII)
        assert len(new) <= MOST_CHARS
        assert old == new or not re.fullmatch(r"[A-Za-z_]\w{0,63}", old, re.ASCII)
    assert accepted_names(reversed(names)) == made


@pytest.mark.parametrize("token", [*TEMPLATE_TOKENS, "[EOS]", "<think>"])
@pytest.mark.parametrize("where", ["user", "result", "arguments", "tool"])
def test_words_that_spell_a_special_token_are_no_row_of_k2(token: str, where: str) -> None:
    words = {name: "fine" for name in ("user", "result", "arguments")} | {where: f"a {token} b"}
    call = {"id": "c", "type": "function", "function": {"name": "find", "arguments": "{}"}}
    call["function"]["arguments"] = json.dumps({"q": words["arguments"]})
    row = stored(
        [
            {"role": "user", "content": words["user"]},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "name": "find", "content": words["result"]},
            {"role": "assistant", "content": "Done."},
        ]
    )
    if where == "tool":
        described = tool("find")
        described["function"]["description"] = words["tool"]
        row["tools"] = json.dumps([described])
    with pytest.raises(LeftOutError, match="spells_special_token"):
        FORMATS["k2"].parts[0].row(row, FormatOptions())


@pytest.mark.parametrize("style", ["json", "typescript"])
def test_k2_declares_the_tools_under_the_names_that_its_calls_have(style: Any) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "get-alerts", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "Any?"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "name": "get-alerts", "content": "none"},
        {"role": "assistant", "content": "None."},
    ]
    row = FORMATS["k2"].parts[0].row(stored(messages), FormatOptions(declarations=style))
    declared = {"json": '"name":"get_alerts"', "typescript": "type get_alerts = (_: {"}[style]
    assert declared in row["text"]
    assert "functions.get_alerts:0" in row["text"]
    assert "get-alerts" not in row["text"]
    assert row["tool_names"] == {"get_alerts": "get-alerts"}


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "assistant", "content": "Hello, I am Rhea."}],
        [{"role": "user", "content": "a"}, *[{"role": "assistant", "content": "b"}] * 2],
        [
            {"role": "user", "content": "a"},
            {"role": "system", "content": "Be brief."},
            {"role": "assistant", "content": "b"},
        ],
    ],
)
def test_turns_that_do_not_alternate_are_no_row_of_sharegpt(messages: list[Row]) -> None:
    with pytest.raises(LeftOutError, match="turns_do_not_alternate"):
        made("sharegpt", messages)


def test_messages_without_loss_say_so_where_the_form_can() -> None:
    messages = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"role": "user", "content": "c"},
        {"role": "assistant", "content": "d"},
    ]
    flags = [False, False, False, True]
    for name, marked in (("trl", NO_LOSS), ("verl", NO_LOSS), ("openai", {"weight": 0})):
        written = made(name, messages, flags)["messages"]
        assert written == [*messages[:1], messages[1] | marked, *messages[2:]]
    steps = made("atif", messages, flags)["steps"]
    assert [step.get("extra") for step in steps] == [None, {"train": False}, None, None]


def test_of_two_attempts_the_prompt_is_what_both_share() -> None:
    shared = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
    good, bad = ({"role": "assistant", "content": word} for word in ("good", "bad"))
    row = pair([*shared, good], [*shared, bad])
    assert (row["prompt"], row["chosen"], row["rejected"]) == (shared, [good], [bad])


@pytest.mark.parametrize(
    ("chosen", "rejected"),
    [
        (["u1", "a"], ["u2", "a"]),
        (["u1", "a", "u2", "a"], ["u1", "a", "u3", "a"]),
        (["u1", "a"], ["u1", "a", "u2", "a"]),
        (["u1", "a"], ["u1", "a"]),
    ],
)
def test_a_pair_whose_agent_does_not_differ_first_is_none(
    chosen: list[str], rejected: list[str]
) -> None:
    def spoken(words: list[str]) -> list[Row]:
        roles = {"u": "user", "a": "assistant"}
        return [{"role": roles[word[0]], "content": word} for word in words]

    with pytest.raises(LeftOutError, match="pair_without_shared_prompt"):
        pair(spoken(chosen), spoken(rejected))


def pair(chosen: list[Row], rejected: list[Row]) -> Row:
    row = stored(chosen) | {"rejected_messages": rejected}
    row |= {"rejected_id": "t2", "failed_criterion": "goal"}
    return FORMATS["preferences"].parts[0].row(row, FormatOptions())
