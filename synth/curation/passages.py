"""What of a trajectory, and of an evaluation, is compared with the other."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from records.tables.schemas import Row
from synth.matching.similarity import words_of
from synth.rubrics.reading.messages import text_of
from tool_specs.coverage.duplicates import texts as texts_of_tool

TrajectoryPart = Literal["system", "tools", "brief", "user", "assistant", "result"]
"""`brief`: what the simulated user of the task is told to want."""

PassageKind = Literal["text", "tool"]

MOST_WORDS = 120
"""Of one passage; a longer text is compared paragraph by paragraph."""

FEWEST_WORDS = 8
"""Of one passage: shorter ones are alike by chance."""

_SCHEMAS = ("parameters", "input_schema", "inputSchema")
_PART_OF = {"system": "system", "user": "user", "assistant": "assistant", "tool": "result"}
_BLANK_LINES = re.compile(r"\n\s*\n")


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
        text = text_of(message)
        part = _PART_OF.get(message["role"])
        if part is None or not text:
            continue
        if part == "user":
            said.append(text)
        yield TrajectoryText(part, number, text, part in ("system", "user"))  # type: ignore[arg-type]
    if len(said) > 1:  # a task may be told bit by bit
        yield TrajectoryText("user", -1, " ".join(said), True)


def _brief_texts(brief: Mapping[str, Any]) -> Iterator[str]:
    told = [brief.get("opening"), brief.get("situation"), "\n".join(brief.get("wishes") or ())]
    yield from dict.fromkeys(text for text in told if text)


def tool_text(tool: Mapping[str, Any]) -> str:
    """What a model reads of a tool: name, description, parameters."""
    schema = next((tool[key] for key in _SCHEMAS if key in tool), {})
    read = {"name": tool["name"], "description": tool.get("description") or ""}
    return "\n".join(text for text in texts_of_tool(read | {"input_schema": schema}) if text)


def evaluation_parts(value: Any) -> Iterator[tuple[PassageKind, str]]:
    """Every tool and every other string in a row of an evaluation."""
    if isinstance(value, str):
        yield "text", value
    elif isinstance(value, dict):
        if isinstance(value.get("name"), str) and any(key in value for key in _SCHEMAS):
            yield "tool", tool_text(value)
            return
        for inner in value.values():
            yield from evaluation_parts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from evaluation_parts(inner)


def passages_in(text: str) -> list[str]:
    """The text, where it is short enough, else its paragraphs, or their lines; what is too short
    goes with what follows."""
    found: list[str] = []
    held = ""
    for piece in _pieces(text):
        held = f"{held}\n{piece}" if held else piece
        if len(words_of(held)) >= FEWEST_WORDS:
            found.append(held)
            held = ""
    return found


def _pieces(text: str) -> Iterator[str]:
    if len(words_of(text)) <= MOST_WORDS:
        yield text
        return
    for paragraph in _BLANK_LINES.split(text):
        if len(words_of(paragraph)) <= MOST_WORDS:
            yield paragraph
        else:
            yield from paragraph.splitlines()
