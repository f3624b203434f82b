"""What the judge is shown of an episode, and whether words that it quotes stand there."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any, Literal, NamedTuple

from records.tables.episode_tables import ELSEWHERE
from records.tables.schemas import Row
from synth.rubrics.reading.messages import text_of

MIN_QUOTED = 4
"""Letters and digits of a quote that shows anything: "Done" does, "e" does not."""

QuotedFrom = Literal["instructions", "tools", "changes", "user", "assistant", "call", "result"]


class QuotableText(NamedTuple):
    of: QuotedFrom
    """Whose words they are. assistant: what it says; call: what it asks a tool to do."""
    plain: str
    """In the form in which quotes are compared."""


ANOTHER = (
    "Another conversation begins here, some time later. The assistant remembers nothing of the "
    "earlier ones but its notes."
)


FILES_ALONE = {
    "note": "Of what calls changed only files and tables are seen here. Of what a tool keeps "
    "elsewhere its result alone tells."
}
"""Beside the changes of real servers, which may keep something in their memory."""

CHANGES_UNKNOWN = {
    "note": "The conversation was recorded elsewhere, and nobody here knows what its calls "
    "changed. Of what a call did its result alone tells."
}
"""In the place of the changes of a conversation that was imported."""


class MaterialShown(NamedTuple):
    shown: dict[str, Any]
    """What prompts are given of it: `instructions`, `tools`, `changes`, `transcript`."""
    said: list[QuotableText]
    """Where its quotes may come from."""


def material_of(
    messages: Sequence[Mapping[str, Any]], calls: Sequence[Row], tools: Sequence[Row]
) -> MaterialShown:
    """`messages`: in wire form; `calls`: rows of `tool_calls`, in call order; `tools`: rows of what
    the agent was offered."""
    instructions, transcript = instructions_of(messages), transcript_of(messages, calls)
    offered, changes = tools_shown(tools), changes_of(calls)
    executed_by = {call.get("executed_by") for call in calls}
    notes = [FILES_ALONE] if executed_by & {"mcp", "cassette"} else []
    notes += [CHANGES_UNKNOWN] if ELSEWHERE in executed_by else []
    shown = {
        "instructions": instructions,
        "tools": offered,
        "changes": [*changes, *notes],
        "transcript": as_read(transcript),
    }
    return MaterialShown(shown, quotable(instructions, offered, changes, transcript))


def transcript_of(
    messages: Sequence[Mapping[str, Any]], calls: Sequence[Row] = ()
) -> list[dict[str, Any]]:
    """What was said and done, as the judge reads it: no ids, no reasoning. A result that does not
    name its tool has the name of its call, and what the tool's server asked meanwhile stands with
    it. Between the conversations of an episode it says so."""
    asked = {call["tool_call_id"]: call["exchanges"] for call in calls if call.get("exchanges")}
    transcript: list[dict[str, Any]] = []
    names: dict[Any, str] = {}
    for message in messages:
        if message["role"] == "system":
            if transcript:
                transcript.append({"role": "system", "content": ANOTHER})
            continue
        entry: dict[str, Any] = {"role": message["role"], "content": text_of(message)}
        if message["role"] == "tool":
            name = message.get("name") or names.get(message.get("tool_call_id"), "")
            entry = {"role": "tool", "name": name, "content": entry["content"]}
            if exchanges := asked.get(message.get("tool_call_id")):
                entry["asked_meanwhile"] = [_as_asked(exchange) for exchange in exchanges]
        if made := message.get("tool_calls"):
            names |= {c.get("id"): c["function"]["name"] for c in made}
            entry["calls"] = [
                {"name": c["function"]["name"], "arguments": c["function"]["arguments"]}
                for c in made
            ]
        transcript.append(entry)
    return transcript


def _as_asked(exchange: Mapping[str, Any]) -> dict[str, Any]:
    """A question of a tool's server, and what the user or a model answered."""
    is_form = exchange["method"] == "elicitation/create"
    params, result = exchange["params"], exchange["result"]
    return {
        "of": "user" if is_form else "model",
        "question": params.get("message") if is_form else params.get("messages"),
        "answer": result if result is not None else exchange["refusal"],
    }


def as_read(transcript: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The transcript with arguments and results as JSON values where their texts hold just these,
    and without empty words: what the judge reads, in fewer tokens than texts in texts take."""
    shown: list[dict[str, Any]] = []
    for entry in transcript:
        kept = {key: value for key, value in entry.items() if key != "content" or value}
        if entry["role"] == "tool":
            kept["content"] = _parsed(entry["content"])
        if calls := entry.get("calls"):
            kept["calls"] = [call | {"arguments": _parsed(call["arguments"])} for call in calls]
        shown.append(kept)
    return shown


def _parsed(text: str) -> Any:
    """The JSON object or list that the text is; the text itself where anything would get lost."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    again = json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list)) else ""
    return value if "".join(again.split()) == "".join(text.split()) else text


def instructions_of(messages: Sequence[Mapping[str, Any]]) -> str:
    """Once, where several conversations begin with the same."""
    return "\n\n".join(dict.fromkeys(text_of(m) for m in messages if m["role"] == "system"))


def changes_of(calls: Sequence[Row]) -> list[dict[str, Any]]:
    """What each call truly changed, in call order: more than its result may tell. What changed by
    itself meanwhile stands between, with the job's name and the moment."""
    return [
        {
            **who,
            "changed": [
                {key: change[key] for key in _CHANGE if change.get(key) is not None}
                for change in changes
            ],
        }
        for call in calls
        for who, changes in _by_whom(call)
    ]


_CHANGE = ("op", "entity", "id", "before", "after")


def _by_whom(call: Row) -> Iterator[tuple[dict[str, Any], list[Mapping[str, Any]]]]:
    """(who and what with, changes), in the order in which they came about."""
    for made, changes in groupby(call["state_diff"] or (), lambda c: (c.get("job"), c.get("at"))):
        job, at = made
        if job is None:
            yield {"tool": call["name"], "by": call["actor"]}, list(changes)
        else:
            yield {"job": job, "by": "environment", "at": at}, list(changes)


def tools_shown(tools: Sequence[Row]) -> list[dict[str, Any]]:
    """Names, descriptions, and what is said of the parameters: what the assistant could have done,
    and what it may tell of the limits."""
    return [
        {"name": tool["name"], "description": tool["description"]}
        | ({"parameters": told} if (told := _parameters(tool["input_schema"])) else {})
        for tool in tools
    ]


_EXAMPLE = re.compile(
    r"[,:;]?\s*\(?\b(?:such as|for example|for instance|e\.g\.|example:)[,:]?\s"
    r"(?:(?!, (?:at most|at least|up to|from)\b)(?:[^.;)]|\.(?=\S)))*\)?",
    re.IGNORECASE,
)
"""A value that is an example would bear out a value that somebody made up."""


def _parameters(schema: Mapping[str, Any]) -> dict[str, str]:
    """Parameter -> its description without examples, with the bounds that the schema sets."""
    found = {}
    for name, spec in schema.get("properties", {}).items():
        if isinstance(spec, Mapping) and spec.get("description"):
            bounds = [f"{key} {spec[key]}" for key in ("minimum", "maximum") if key in spec]
            told = _EXAMPLE.sub("", spec["description"])
            found[name] = told + (f" ({', '.join(bounds)})" if bounds else "")
    return found


def quotable(
    instructions: str,
    tools: Iterable[Mapping[str, Any]],
    changes: Iterable[Mapping[str, Any]],
    transcript: Iterable[Mapping[str, Any]],
) -> list[QuotableText]:
    """Every text of the material that a quote may come from (`is_quoted`). What the user changed
    is the user's."""
    found: list[tuple[QuotedFrom, str]] = [("instructions", instructions)]
    for tool in tools:
        found.append(("tools", json.dumps(tool, ensure_ascii=False)))
    for change in changes:
        of: QuotedFrom = "user" if change["by"] == "user" else "changes"
        found.append((of, json.dumps(change, ensure_ascii=False)))
    transcript = list(transcript)
    for entry, read in zip(transcript, as_read(transcript), strict=True):
        of = _SPEAKERS.get(entry["role"], "assistant")
        found += [(of, entry["content"]), (of, json.dumps(read, ensure_ascii=False))]
        for exchange in entry.get("asked_meanwhile", ()):
            answerer: QuotedFrom = "user" if exchange["of"] == "user" else "result"
            found.append((answerer, json.dumps(exchange["answer"], ensure_ascii=False)))
        of = "user" if of == "user" else "call"
        for call, shown in zip(entry.get("calls", ()), read.get("calls", ()), strict=True):
            found.append((of, f"{call['name']} {call['arguments']}"))
            found.append((of, json.dumps(shown, ensure_ascii=False)))
    return [QuotableText(of, _plain(text)) for of, text in found]


_SPEAKERS: Mapping[str, QuotedFrom] = {"user": "user", "tool": "result"}


def is_quoted(quote: str, said: Iterable[QuotableText], *, least: int = MIN_QUOTED) -> bool:
    """Whether one text of `said` holds the quote, part for part and in order where it leaves words
    out.

    Case, spacing, emphasis, kinds of quotation marks and escapes of JSON make no difference. Every
    part must have `least` letters and digits: fewer could stand anywhere. A result as a whole, such
    as `[]`, may have fewer.
    """
    whole = _plain(quote)
    parts = [part for part in map(_plain, whole.split("...")) if part]
    is_long, parts_are = letters_in(whole) >= least, all(letters_in(p) >= least for p in parts)
    return any(
        (is_long and whole in text.plain)
        or (bool(whole) and text.of == "result" and whole == text.plain)
        or (bool(parts) and parts_are and _in_order(parts, text.plain))
        for text in said
    )


def places_of(quote: str, text: str) -> list[tuple[int, int]]:
    """Where the quote stands in the text as it was written: (start, end) of each of its parts, in
    order; none where it does not stand there. Spacing counts for nothing here, since a text may be
    shown in other lines than it was quoted from."""
    bare, origins = _bare(text)
    whole = "".join(_plain(quote).split())
    parts = [whole] if whole and whole in bare else whole.split("...")
    found, start = [], 0
    for part in parts:
        if not (wanted := part.strip("'")):
            continue
        if letters_in(wanted) < MIN_QUOTED or (place := bare.find(wanted, start)) < 0:
            return []
        start = place + len(wanted)
        found.append((origins[place], origins[start - 1] + 1))
    return found


def _bare(text: str) -> tuple[str, list[int]]:
    """The text as `_plain` makes it but without white space, and where each letter comes from."""
    letters: list[str] = []
    origins: list[int] = []
    for place, letter in enumerate(text):
        if letter == "\\" or (letter == "n" and text[place - 1 : place] == "\\"):
            continue
        for plain in letter.translate(_MARKS).casefold():
            if not plain.isspace():
                letters.append(plain)
                origins.append(place)
    return "".join(letters), origins


def letters_in(text: str) -> int:
    """Letters and digits, counted."""
    return sum(map(str.isalnum, text))


def _in_order(parts: Iterable[str], text: str) -> bool:
    start = 0
    for part in parts:
        if (found := text.find(part, start)) < 0:
            return False
        start = found + len(part)
    return True


@lru_cache(maxsize=2048)
def _plain(text: str) -> str:
    """The same tools and instructions come again with every episode of an agent."""
    text = text.replace("\\n", " ").replace("\\", "")
    text = text.translate(_MARKS).casefold()
    return " ".join(text.split()).strip(" '")


_MARKS = {ord(mark): "'" for mark in '"\u201c\u201d\u201e\u2018\u2019`\u00ab\u00bb'} | {
    ord("*"): "",
    0x2026: "...",
    0x202F: " ",
    0xA0: " ",
}
"""Models quote without the emphasis that stands in the text, and with their own marks."""
