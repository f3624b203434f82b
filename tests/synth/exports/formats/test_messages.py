"""Arguments, thoughts and loss flags of messages in the formats that have a place for them."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from records.errors import ConfigError
from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.exports.export import export_dataset
from synth.exports.formats.messages import (
    in_openai_form,
    num_thoughts,
    with_object_arguments,
    with_reasoning,
)
from synth.llm.wire.reasoning import cut_reasoning
from synth.rubrics.turns import what_is_wrong
from tests.synth.exports.loading import load
from tests.synth.small_dataset import conversation

HERMES = """
{%- if tools %}<tools>{% for tool in tools %}{{ tool | tojson }}{% endfor %}</tools>
{% endif %}
{%- for message in messages %}<|{{ message.role }}|>{{ message.content or "" }}
{%- for call in message.tool_calls or [] %}
{%- set function = call.function %}
<tool_call>{"name": {{ function.name | tojson }}, "arguments": {{ function.arguments | tojson }}
{%- raw %}}</tool_call>{% endraw %}
{%- endfor %}
{% endfor %}"""
"""A chat template as Hermes' and Qwen's are: calls and tools are written by `tojson`."""


@pytest.mark.slow
def test_arguments_are_objects_where_the_model_wrote_one(dataset: Dataset, tmp_path: Path) -> None:
    made = export_dataset(dataset, tmp_path / "out")
    rows = load(tmp_path / "out")["train"]
    arguments = [
        [call["function"]["arguments"] for call in row["messages"][2]["tool_calls"]] for row in rows
    ]
    whole = [{"name": "Heron"}, {"name": "Heron", "limit": 3}]
    assert arguments == [whole, [whole[0], '{"name": Heron'], whole]
    assert made.text_arguments == 1


@pytest.mark.parametrize("text", ["[1]", "NaN", '{"a": NaN}', '{"a": "\\ud800"}', "", "[" * 9999])
def test_arguments_that_no_file_can_hold_as_an_object_stay_text(text: str) -> None:
    messages = conversation()
    messages[2]["tool_calls"][0]["function"]["arguments"] = text
    [call, _] = with_object_arguments(messages)[2]["tool_calls"]
    assert call["function"]["arguments"] == text


def test_a_chat_template_of_transformers_renders_tools_and_calls(
    dataset: Dataset, tmp_path: Path
) -> None:
    from transformers.utils.chat_template_utils import render_jinja_template

    export_dataset(dataset, tmp_path / "out")
    row = load(tmp_path / "out")["train"][0]
    [text], _ = render_jinja_template(
        conversations=[row["messages"]], tools=row["tools"], chat_template=HERMES
    )
    assert '<tool_call>{"name": "find_boats", "arguments": {"name": "Heron"}}</tool_call>' in text
    assert '"name": "rent_boat", "arguments": {"name": "Heron", "limit": 3}}' in text
    assert text.count("<|tool|>") == 3
    assert '"description": "The tool find_boats."' in text
    assert text.rstrip().endswith("<|assistant|>Done, it costs 20 EUR.")


@pytest.mark.slow
def test_openai_lines_hold_the_wire_form_and_nothing_else(dataset: Dataset, tmp_path: Path) -> None:
    from openai.types.chat import ChatCompletionMessageParam
    from pydantic import TypeAdapter

    made = export_dataset(dataset, tmp_path / "out", format="openai")
    text = (tmp_path / "out" / "train.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines()]  # also splits at U+2028
    assert made.rows == {"train": len(lines)} == {"train": 3}
    messages_of = TypeAdapter(list[ChatCompletionMessageParam])
    for line in lines:
        assert line.keys() == {"messages", "tools"}
        messages_of.validate_python(line["messages"])
        for message in line["messages"]:
            assert message.keys().isdisjoint({"reasoning_content", "name"})
            for call in message.get("tool_calls", ()):
                assert isinstance(call["function"]["arguments"], str)
    assert "\U0001f6f6" in lines[2]["messages"][1]["content"]


def thoughtful(content: str | None, thought: str) -> Row:
    return {"role": "assistant", "content": content, "reasoning_content": thought}


@pytest.mark.parametrize("format_", ["hf", "openai"])
def test_thoughts_are_exported_only_when_asked_for(
    dataset: Dataset, tmp_path: Path, format_: Any
) -> None:
    counts: dict[Any, int] = {"none": 0, "think": 3}
    for reasoning, count in counts.items():
        out = tmp_path / reasoning
        made = export_dataset(dataset, out, format=format_, reasoning=reasoning)
        assert made.thoughts == count
        for messages in exported_messages(out):
            assert not any("reasoning_content" in message for message in messages)
            begins = [m["content"].startswith("<think>\nLook it up first.") for m in messages]
            assert begins == [i == 2 and count > 0 for i in range(len(messages))]
        card = (out / "README.md").read_text()
        assert ("What models thought is left out" in card) is (reasoning == "none")


def exported_messages(out: Path) -> list[list[Row]]:
    lines = out / "train.jsonl"
    if lines.exists():
        return [json.loads(line)["messages"] for line in lines.read_text().splitlines()]
    [path] = (out / "data").glob("*.parquet")
    return [json.loads(text) for text in pq.read_table(path)["messages"].to_pylist()]


def test_a_form_with_a_field_for_thoughts_has_them_there(dataset: Dataset, tmp_path: Path) -> None:
    made = export_dataset(dataset, tmp_path / "out", reasoning="field")
    assert made.thoughts == 3
    for messages in exported_messages(tmp_path / "out"):
        assert messages[2]["reasoning_content"] == "Look it up first."
        assert messages[2]["content"] == ""


def test_a_form_without_a_field_for_thoughts_refuses_it(dataset: Dataset, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no field for thoughts; think writes them"):
        export_dataset(dataset, tmp_path / "out", format="openai", reasoning="field")
    assert not (tmp_path / "out").exists()


def test_marked_thoughts_are_read_back_as_they_were() -> None:
    said = [thoughtful("Done.", "First this,\nthen <b>that</b>."), thoughtful(None, "A call.")]
    for message, written in zip(said, with_reasoning(said, "think"), strict=True):
        cut = cut_reasoning(written["content"])
        assert cut.reasoning == message["reasoning_content"]
        assert cut.content == (message["content"] or "")


def test_a_thought_that_would_end_early_is_not_marked() -> None:
    said = [thoughtful("Done.", "It writes </THINK> itself."), thoughtful("Done.", "  ")]
    plain = [{"role": "assistant", "content": "Done."}] * 2
    assert with_reasoning(said, "think") == plain
    assert num_thoughts(said, "think") == 0
    assert with_reasoning(said, "field") == [said[0], plain[1]]
    assert num_thoughts(said, "field") == 1


def test_turns_without_loss_have_weight_zero() -> None:
    trained = [m["role"] == "assistant" and i > 2 for i, m in enumerate(conversation())]
    written = in_openai_form(conversation(), trained)
    assert [m.get("weight") for m in written if m["role"] == "assistant"] == [0, None, None]
    assert not any("weight" in m for m in in_openai_form(conversation(), None))


def broken(name: str) -> list[Row]:
    messages = conversation()
    if name == "ends with a call":
        return messages[:-2]
    if name == "ends with a result":
        return messages[:-1]
    if name == "call without result":
        del messages[4]
    elif name == "result without call":
        del messages[2]
    elif name == "two results of a call":
        messages.insert(5, messages[4])
    elif name == "one id twice":
        messages[2]["tool_calls"][1]["id"] = "call_0"
    elif name == "two users in a row":
        messages.insert(1, messages[1])
    elif name == "unknown role":
        messages[0]["role"] = "narrator"
    elif name == "empty":
        return []
    return messages


@pytest.mark.parametrize(
    "name",
    [
        "ends with a call",
        "ends with a result",
        "call without result",
        "result without call",
        "two results of a call",
        "one id twice",
        "two users in a row",
        "unknown role",
        "empty",
    ],
)
def test_conversations_that_no_trainer_could_take(name: str) -> None:
    assert what_is_wrong(broken(name))
    assert what_is_wrong(conversation()) is None
