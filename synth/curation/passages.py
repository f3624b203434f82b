"""What of a trajectory, and of an evaluation, is compared with the other."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from records.tables.schemas import Row
from synth.matching.evaluations import strings_in
from synth.matching.word_runs import length_in_words, word_spans
from synth.rubrics.reading.messages import text_of
from tool_specs.coverage.duplicates import texts as texts_of_tool

TrajectoryPart = Literal[
    "system", "tools", "brief", "user", "assistant", "thought", "call", "result"
]
"""`brief`: what the simulated user of the task is told to want; `call`: the arguments of one."""

PassageKind = Literal["text", "tool"]

MOST_WORDS = 120
"""Of one passage; a longer text is compared paragraph by paragraph, a longer paragraph line by
line, a longer line sentence by sentence."""

FEWEST_WORDS = 8
"""Of one passage: shorter ones are alike by chance."""

_SCHEMAS = ("parameters", "input_schema", "inputSchema")
_PART_OF: Mapping[str, TrajectoryPart] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "result",
}
_BLANK_LINES = re.compile(r"\n\s*\n")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[\u3002\uff01\uff1f])")
"""Also of Chinese and Japanese, which write no space after it."""


class TrajectoryText(NamedTuple):
    """A text of a trajectory."""

    part: TrajectoryPart
    place: int
    """Number of the message or tool; 0 of a brief."""
    text: str
    is_passage: bool = False
    """Whether its passages are compared as well as its runs of words. What the agent and its tools
    say is only looked through for runs."""

    @property
    def kind(self) -> PassageKind:
        return "tool" if self.part == "tools" else "text"


def trajectory_texts(trajectory: Row, brief: Mapping[str, Any] | None) -> Iterator[TrajectoryText]:
    """Every text of a row of `trajectories`, and of its task's brief."""
    for number, tool in enumerate(trajectory["tools"] or ()):
        yield TrajectoryText("tools", number, tool_text(tool.get("function", tool)), True)
    for text in _brief_texts(brief or {}):
        yield TrajectoryText("brief", 0, text, True)
    said = []
    for number, message in enumerate(trajectory["messages"]):
        part = _PART_OF[message["role"]]
        if text := text_of(message):
            if part == "user":
                said.append(text)
            yield TrajectoryText(part, number, text, part in ("system", "user"))
        if thought := message.get("reasoning_content"):
            yield TrajectoryText("thought", number, thought)
        if written := "\n".join(_arguments_of(message)):
            yield TrajectoryText("call", number, written)
    if len(said) > 1:  # a task may be told bit by bit
        yield TrajectoryText("user", -1, " ".join(said), True)


def _arguments_of(message: Mapping[str, Any]) -> Iterator[str]:
    """What the agent writes into its calls: strings as they are meant, without JSON's escapes."""
    for call in message.get("tool_calls") or ():
        arguments = call["function"]["arguments"]
        held = held_json(arguments)
        yield from strings_in(arguments if held is None else held)


def held_json(text: str) -> dict[str, Any] | list[Any] | None:
    """The JSON object or list that a text is."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _brief_texts(brief: Mapping[str, Any]) -> Iterator[str]:
    told = [brief.get("opening"), brief.get("situation"), "\n".join(brief.get("wishes") or ())]
    yield from dict.fromkeys(text for text in told if text)


def tool_text(tool: Mapping[str, Any]) -> str:
    """What a model reads of a tool: name, description, and behind a blank line the parameters."""
    schema = next((tool[key] for key in _SCHEMAS if key in tool), {})
    read = {"name": tool["name"], "description": tool.get("description") or ""}
    name, description, *parameters = texts_of_tool(read | {"input_schema": schema})
    head = _BLANK_LINES.sub("\n", f"{name}\n{description}")
    return "\n".join([head, "", *(text for text in parameters if text)])


def told_of(text: str, kind: PassageKind) -> str:
    """What is looked through for runs of words. Of a tool the parameters are not: those for pages
    and dates are described alike everywhere."""
    return text.partition("\n\n")[0] if kind == "tool" else text


def evaluation_parts(value: Any) -> Iterator[tuple[PassageKind, str]]:
    """Every tool and every other string in a row of an evaluation. A string that holds JSON, as
    tools often do in tables, is read."""
    if isinstance(value, str):
        held = held_json(value)
        if held is None:
            yield "text", value
        else:
            yield from evaluation_parts(held)
    elif isinstance(value, dict):
        told: tuple[str, ...] = ()
        if isinstance(value.get("name"), str) and any(key in value for key in _SCHEMAS):
            yield "tool", tool_text(value)
            told = ("name", "description", *_SCHEMAS)
        for key, inner in value.items():
            if key not in told:
                yield from evaluation_parts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from evaluation_parts(inner)


def passages_in(text: str) -> list[str]:
    """The text, where it is short enough, else its pieces; what is too short goes with what
    follows."""
    found: list[str] = []
    held = ""
    for piece in _pieces(text):
        held = f"{held}\n{piece}" if held else piece
        if length_in_words(held) >= FEWEST_WORDS:
            found.append(held)
            held = ""
    return found


def _pieces(text: str) -> Iterator[str]:
    """Of at most `MOST_WORDS`, cut where a writer begins something new, if possible."""
    cuts = (_BLANK_LINES.split, str.splitlines, _SENTENCE_END.split, _cut_by_length)
    yield from _cut(text, cuts)


def _cut(text: str, cuts: Sequence[Callable[[str], Iterable[str]]]) -> Iterator[str]:
    if length_in_words(text) <= MOST_WORDS:
        yield text
        return
    for piece in cuts[0](text):
        yield from _cut(piece, cuts[1:])


def _cut_by_length(text: str) -> Iterator[str]:
    spans = word_spans(text)
    for first in range(0, len(spans), MOST_WORDS):
        many = spans[first : first + MOST_WORDS]
        yield text[many[0][1][0] : many[-1][1][1]]
