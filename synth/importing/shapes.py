"""The shapes of rows: which one a row has, and the conversation in it.

Read are rows as the documentation of each shows them. A row of another shape is refused with the
columns that it has.
"""

from collections.abc import Callable, Mapping
from typing import Any

from records.errors import ItemError
from synth.importing.conversation import ForeignConversation, ImportFormat
from synth.importing.files import parsed
from synth.importing.messages import call_of, dict_in, joined, list_of, message_of
from synth.importing.sharegpt import messages_of

TOOL_DECLARATION = "<|im_system|>tool_declare<|im_middle|>"
"""With this begins a system message that is nothing but Kimi K2's rendering of the tools."""

_PREFERENCES = ("chosen", "rejected", "preferred_output", "non_preferred_output", "kto_tag")
"""Columns of rows that compare answers, or label them."""

_STORED = {"run_id", "schema_version"}
"""Columns of every table of a dataset."""


def shape_of(row: Mapping[str, Any]) -> ImportFormat:
    """By the columns. ItemError for a row that is none of them."""
    if found := [name for name in _PREFERENCES if name in row]:
        words = f"it has {', '.join(found)}: rows that compare answers are not imported"
        raise ItemError("preference_row", words)
    if row.keys() >= _STORED:
        words = "it is a row of a dataset's table; synth export writes rows that can be imported"
        raise ItemError("dataset_row", words)
    if "messages" in row:
        if "available_tools" in row or {"uuid", "subset_name"} <= row.keys():
            return "toucan"
        has_tools = "tools" in row  # a simulation never has; rows of the export `hf` do
        is_simulation = {"task_id", "termination_reason"} <= row.keys() and not has_tools
        return "tau2" if is_simulation else "openai"
    if "conversations" in row:
        return "sharegpt"
    there = ", ".join(map(str, row))[:300] or "nothing"
    raise ItemError("unknown_shape", f"it has neither messages nor conversations, only {there}")


def toucan(row: Mapping[str, Any], _: Mapping[str, Any]) -> ForeignConversation:
    """A row of Toucan-1.5M, of a model's subset or of its selection for training."""
    given = list_of(_of(row, "messages"), "messages")
    messages = [_toucan_message(one, place) for place, one in enumerate(given)]
    told = {
        name: _json_or_text(row[name])
        for name in ("subset_name", "question_quality_assessment", "response_quality_assessment")
        if row.get(name)
    }
    return ForeignConversation(
        format="toucan",
        messages=joined(m for m in messages if not _is_declaration(m)),
        tools=_tools(row.get("available_tools") or row.get("tools")),
        source="toucan",
        row_id=_text_or_none(row.get("uuid")),
        given=told,
    )


def _toucan_message(given: Any, place: int) -> dict[str, Any]:
    """Roles `tool_call` and `tool_response`, whose content may be a dict of Python's, are those of
    the selection."""
    role = given.get("role") if isinstance(given, Mapping) else None
    if role == "tool_response":
        return message_of({**given, "role": "tool"}, place)
    if role != "tool_call":
        return message_of(given, place)
    call = call_of(dict_in(given.get("content"), place), f"message {place}")
    return {"role": "assistant", "content": "", "tool_calls": [call]}


def _is_declaration(message: Mapping[str, Any]) -> bool:
    return message["role"] == "system" and message["content"].startswith(TOOL_DECLARATION)


def sharegpt(row: Mapping[str, Any], _: Mapping[str, Any]) -> ForeignConversation:
    """A row of LLaMA-Factory's `sharegpt` formatting, by its default names."""
    return _sharegpt(row, "sharegpt")


def apigen_mt(row: Mapping[str, Any], _: Mapping[str, Any]) -> ForeignConversation:
    """A row of APIGen-MT, which has the same form."""
    return _sharegpt(row, "apigen-mt")


def _sharegpt(row: Mapping[str, Any], name: ImportFormat) -> ForeignConversation:
    return ForeignConversation(
        format=name,
        messages=messages_of(_of(row, "conversations"), row),
        tools=_tools(row.get("tools")),
        source=name,
        row_id=_text_or_none(row.get("id")),
    )


def openai(row: Mapping[str, Any], _: Mapping[str, Any]) -> ForeignConversation:
    """A line of OpenAI's fine-tuning files, or a row of messages and tools as TRL has them."""
    given = list_of(_of(row, "messages"), "messages")
    messages = [message_of(one, place) for place, one in enumerate(given)]
    return ForeignConversation(
        format="openai",
        messages=messages,
        tools=_tools(row.get("tools") or row.get("functions")),
        source="openai",
        row_id=_text_or_none(row.get("id")),
    )


ShapeReader = Callable[[Mapping[str, Any], Mapping[str, Any]], ForeignConversation]
"""A conversation from a row and from what the file says of all its rows."""


def _of(row: Mapping[str, Any], column: str) -> Any:
    if row.get(column) is None:
        there = ", ".join(map(str, row))[:300] or "nothing"
        raise ItemError("no_messages", f"it has no {column}, only {there}")
    return row[column]


def _tools(value: Any) -> list[Any] | None:
    """None where none are listed."""
    return list_of(value, "the list of tools", "bad_tools") or None if value else None


def _json_or_text(value: Any) -> Any:
    try:
        return parsed(value) if isinstance(value, str) else value
    except ItemError:
        return value


def _text_or_none(value: Any) -> str | None:
    return None if value is None else str(value)
