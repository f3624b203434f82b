"""Exported rows as our messages again: what each format keeps of them, read by its own rules.

Arguments come back as what they spell, and thoughts not at all: see `as_told`.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from records.chat.sharegpt import BETWEEN_RESULTS, CALL_MARKS
from records.tables.schemas import Row
from synth.exports.formats.messages import object_arguments

Messages = list[dict[str, Any]]

RELEASED_CALL = re.compile(
    r"<\|tool_call_begin\|>\s*(?P<id>[\w.]+:\d+)\s*<\|tool_call_argument_begin\|>\s*"
    r"(?P<arguments>.*?)\s*<\|tool_call_end\|>",
    re.DOTALL,
)
"""How K2's released parser finds calls."""

_BLOCK = re.compile(
    r"<\|im_(system|user|assistant)\|>(.*?)<\|im_middle\|>(.*?)<\|im_end\|>", re.DOTALL
)


def as_told(messages: Sequence[Mapping[str, Any]], *, names: bool = True) -> Messages:
    """Our messages without thoughts, arguments as what they spell, results without the tool's name
    where a format has no place for it."""
    told = []
    for message in messages:
        gone = {"reasoning_content", *(() if names else ("name",))}
        own = {key: value for key, value in message.items() if key not in gone}
        if calls := own.get("tool_calls"):
            own["tool_calls"] = [_call(c["id"], **c["function"]) for c in calls]
        told.append(own)
    return told


def _call(call_id: str, name: str, arguments: Any) -> Row:
    value = object_arguments(arguments) if isinstance(arguments, str) else arguments
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": value}}


def of_flagged(messages: Sequence[Mapping[str, Any]]) -> Messages:
    """Of the forms whose messages are ours with flags on them."""
    flags = {"train", "loss", "weight"}
    return as_told([{k: v for k, v in m.items() if k not in flags} for m in messages])


def of_sharegpt(row: Row) -> Messages:
    messages: Messages = []
    if row["system"] is not None:
        messages.append({"role": "system", "content": row["system"]})
    ids, results = iter(row["calls"]), iter(row["results"])
    for turn in row["conversations"]:
        value = turn["value"]
        match turn["from"]:
            case "human":
                messages.append({"role": "user", "content": value})
            case "gpt":
                messages.append({"role": "assistant", "content": value})
            case "function_call":
                said, mark, text = value.partition(CALL_MARKS[0])
                calls = json.loads(text.removesuffix(CALL_MARKS[1]) if mark else value)
                calls = calls if isinstance(calls, list) else [calls]
                made = [_call(next(ids), one["name"], one["arguments"]) for one in calls]
                content = said if mark else ""
                messages.append({"role": "assistant", "content": content, "tool_calls": made})
            case "observation":
                while True:
                    one = next(results)
                    content, value = value[: one["chars"]], value[one["chars"] :]
                    named = {"name": one["name"]} if one["name"] is not None else {}
                    told = {"tool_call_id": one["call_id"], "content": content}
                    messages.append({"role": "tool", **named, **told})
                    if not value:
                        break
                    assert value.startswith(BETWEEN_RESULTS)
                    value = value.removeprefix(BETWEEN_RESULTS)
    return messages


def of_k2(row: Row) -> Messages:
    """By the rules of K2's released parser: a name stands between the point and the colon."""
    original, ids = row["tool_names"], iter(row["call_ids"])
    messages: Messages = []
    given: dict[str, str] = {}
    for role, name, content in _BLOCK.findall(row["text"]):
        if name == "tool_declare":
            continue
        result = re.match(r"## Return of (\S+)\n", content)
        if role == "system" and name != "system" and result:
            told = {"tool_call_id": given[result[1]], "content": content[result.end() :]}
            messages.append({"role": "tool", "name": original.get(name, name), **told})
            continue
        said, _, section = content.partition("<|tool_calls_section_begin|>")
        message: dict[str, Any] = {"role": role, "content": said}
        calls = []
        for found in RELEASED_CALL.finditer(section):
            tool = found["id"].split(".")[1].split(":")[0]
            given[found["id"]] = next(ids)
            calls.append(_call(given[found["id"]], original.get(tool, tool), found["arguments"]))
        messages.append(message | ({"tool_calls": calls} if calls else {}))
    return messages


def of_atif(document: Row) -> Messages:
    roles = {"system": "system", "user": "user", "agent": "assistant"}
    messages: Messages = []
    for step in document["steps"]:
        message = {"role": roles[step["source"]], "content": step["message"]}
        calls = [
            _call(
                call["tool_call_id"],
                call["function_name"],
                call.get("extra", {}).get("arguments_as_written", call["arguments"]),
            )
            for call in step.get("tool_calls", ())
        ]
        messages.append(message | ({"tool_calls": calls} if calls else {}))
        for result in step.get("observation", {}).get("results", ()):
            named = {"name": result["extra"]["name"]} if "extra" in result else {}
            told = {"tool_call_id": result["source_call_id"], "content": result["content"]}
            messages.append({"role": "tool", **named, **told})
    return messages
