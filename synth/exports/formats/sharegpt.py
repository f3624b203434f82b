"""The form `sharegpt`: conversations of `from` and `value`, as LLaMA-Factory reads them.

Turns alternate there: a person or an observation, then the agent or its calls. Results of parallel
calls are one observation, put together as LLaMA-Factory does it with OpenAI's messages. Calls are
JSON; where the agent said something beside them, they stand behind it between marks. What turns
cannot say (ids, where one result ends) stands in the columns `calls` and `results`, so that the
messages can be made of a row again.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from records.chat.sharegpt import BETWEEN_RESULTS, CALL_MARKS
from records.tables.schemas import STR, STRS, Row
from synth.exports.formats.columns import ABOUT
from synth.exports.formats.form import (
    ExportFormat,
    ExportPart,
    FormatOptions,
    LeftOutError,
    WrittenExport,
    chosen_columns,
)
from synth.exports.formats.messages import object_arguments, tools_in

_TURN = pa.struct([("from", STR), ("value", STR)])
_RESULT = pa.struct([("call_id", STR), ("name", STR), ("chars", pa.int64())])
_COLUMNS = {
    "conversations": pa.list_(_TURN),
    "system": STR,
    "tools": STR,
    "calls": STRS,
    "results": pa.list_(_RESULT),
    **ABOUT,
}


def _row(row: Row, _: FormatOptions) -> Row:
    messages: Sequence[Mapping[str, Any]] = row["messages"]
    system = messages[0]["content"] if messages[0]["role"] == "system" else None
    turns: list[Row] = []
    results: list[Row] = []
    for message in messages[0 if system is None else 1 :]:
        if message["role"] == "tool":
            _add_result(turns, message["content"])
            results.append(
                {
                    "call_id": message["tool_call_id"],
                    "name": message.get("name"),
                    "chars": len(message["content"]),
                }
            )
        else:
            turns.append({"from": _sender(message), "value": _value(message)})
    senders = [turn["from"] in ("gpt", "function_call") for turn in turns]
    if senders != [index % 2 == 1 for index in range(len(turns))]:
        raise LeftOutError("turns_do_not_alternate")
    calls = [call["id"] for message in messages for call in message.get("tool_calls") or ()]
    tools = json.dumps(tools_in(row["tools"]), ensure_ascii=False)
    made = {"system": system, "tools": tools, "calls": calls, "results": results}
    return chosen_columns(row, _COLUMNS, conversations=turns, **made)


def _add_result(turns: list[Row], content: str) -> None:
    if turns and turns[-1]["from"] == "observation":
        turns[-1]["value"] += BETWEEN_RESULTS + content
    else:
        turns.append({"from": "observation", "value": content})


def _sender(message: Mapping[str, Any]) -> str:
    if message["role"] == "user":
        return "human"
    if message["role"] != "assistant":
        raise LeftOutError("turns_do_not_alternate")
    return "function_call" if message.get("tool_calls") else "gpt"


def _value(message: Mapping[str, Any]) -> str:
    content, calls = message["content"] or "", message.get("tool_calls") or ()
    if not calls:
        return content
    written = [
        {"name": function["name"], "arguments": object_arguments(function["arguments"])}
        for function in (call["function"] for call in calls)
    ]
    text = json.dumps(written if len(written) > 1 else written[0], ensure_ascii=False)
    begin, end = CALL_MARKS
    for mark in CALL_MARKS:  # a reader looks for the marks, and would find them in arguments
        text = text.replace(mark, mark.replace("<", "\\u003c"))
    if begin in content:
        raise LeftOutError("spells_marks")
    return f"{content}{begin}{text}{end}" if content else text


def _entry(written: WrittenExport, split: str) -> str:
    return written.name if split == "train" else f"{written.name}_{split}"


def _dataset_info(written: WrittenExport) -> dict[str, str]:
    """LLaMA-Factory's list of data sets, to be given as `dataset_dir` or added to one's own."""
    columns = {"messages": "conversations", "system": "system", "tools": "tools"}
    entries = {
        _entry(written, split): {
            "file_name": written.files(split),
            "formatting": "sharegpt",
            "columns": columns,
        }
        for split in written.splits
    }
    return {"dataset_info.json": json.dumps(entries, indent=2) + "\n"}


def _load(written: WrittenExport) -> tuple[str, str]:
    return "yaml", (
        f"dataset_dir: {json.dumps(written.name)}   # LLaMA-Factory; dataset_info.json is in it\n"
        f"dataset: {json.dumps(_entry(written, written.splits[0]))}"
    )


SHAREGPT = ExportFormat(
    name="sharegpt",
    title="conversations of from and value for LLaMA-Factory, with its dataset_info.json",
    file_types=("jsonl",),
    parts=(
        ExportPart(
            "default",
            "conversations",
            _COLUMNS,
            _row,
            {
                "conversations": "Turns: human or observation, then gpt or function_call",
                "system": "The agent's system prompt",
                "tools": "Tools in OpenAI form, as JSON text",
                "calls": "Id of each call, in their order",
                "results": "Call, tool and length of each result, in their order",
            },
        ),
    ),
    load=_load,
    reasoning=("none", "think"),
    why_no_reasoning="ShareGPT has no field for thoughts; think writes them into the value, "
    "between <think> and </think>",
    keeps_flags=False,
    beside=_dataset_info,
)
