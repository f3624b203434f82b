"""What the judge is shown of an episode, and whether words that it quotes stand there."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from records.tables.schemas import Row

MIN_QUOTED = 4
"""Letters and digits of a quote that shows anything: "Done" does, "e" does not."""


def transcript_of(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What was said and done, as the judge reads it: no ids, no reasoning."""
    transcript: list[dict[str, Any]] = []
    for message in messages:
        if message["role"] == "system":
            continue
        entry: dict[str, Any] = {"role": message["role"], "content": message.get("content") or ""}
        if message["role"] == "tool":
            entry = {"role": "tool", "name": message["name"], "content": entry["content"]}
        if calls := message.get("tool_calls"):
            entry["calls"] = [
                {"name": c["function"]["name"], "arguments": c["function"]["arguments"]}
                for c in calls
            ]
        transcript.append(entry)
    return transcript


def instructions_of(messages: Sequence[Mapping[str, Any]]) -> str:
    return "\n\n".join(m["content"] for m in messages if m["role"] == "system")


def changes_of(calls: Sequence[Row]) -> list[dict[str, Any]]:
    """What each call truly changed, in call order: more than its result may tell."""
    return [
        {
            "tool": call["name"],
            "by": call["actor"],
            "changed": [
                {key: change.get(key) for key in ("op", "entity", "id", "before", "after")}
                for change in call["state_diff"]
            ],
        }
        for call in calls
        if call["state_diff"]
    ]


def tools_shown(tools: Sequence[Row]) -> list[dict[str, str]]:
    """Names and descriptions: what the assistant could have done."""
    return [{"name": tool["name"], "description": tool["description"]} for tool in tools]


def quotable(*parts: Any) -> str:
    """All that a quote may come from, in the form in which quotes are compared (`is_quoted`)."""
    texts: list[str] = []
    for part in parts:
        _collect(part, texts)
    return "\n".join(map(_plain, texts))


def _collect(part: Any, texts: list[str]) -> None:
    if isinstance(part, str):
        texts.append(part)
        return
    texts.append(json.dumps(part, ensure_ascii=False))
    for entry in part if isinstance(part, list) else []:
        if isinstance(entry, dict) and "content" in entry:
            texts.append(entry["content"])
            texts.extend(f"{c['name']} {c['arguments']}" for c in entry.get("calls", ()))


def is_quoted(quote: str, said: str) -> bool:
    """Whether `said` (see `quotable`) holds the quote, part for part where it leaves words out.

    Case, spacing, emphasis, kinds of quotation marks and escapes of JSON make no difference. A
    quote of fewer than MIN_QUOTED letters and digits could stand anywhere.
    """
    parts = [part for part in map(_plain, re.split(r"\.{3}|\u2026", quote)) if part]
    long_enough = sum(map(str.isalnum, "".join(parts))) >= MIN_QUOTED
    return long_enough and all(part in said for part in parts)


def _plain(text: str) -> str:
    text = text.replace("\\n", " ").replace("\\", "")
    text = text.translate(_MARKS).casefold()
    return " ".join(text.split()).strip(" '")


_MARKS = {ord(mark): "'" for mark in '"\u201c\u201d\u201e\u2018\u2019`\u00ab\u00bb'} | {
    ord("*"): "",
    0x202F: " ",
    0xA0: " ",
}
"""Models quote without the emphasis that stands in the text, and with their own marks."""
