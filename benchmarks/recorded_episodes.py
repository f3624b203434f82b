"""Conversations of real language models that the project keeps, as episodes that can be graded.

    played      tasks that a model played in every role (`tests/recorded/played.jsonl`)
    endings     scenes with endings by other minds (`benchmarks.minds`, the development half)
    requests    answers to single requests (`tests/recorded/agent_calls.jsonl`), put together

What a file does not say (persona, reference plan, initial state) stays empty: grading reads none of
it. A request that belongs to a longer conversation of the same file is part of that one, and its
answer's thought stands there.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from benchmarks.minds.halves import pieces_in
from records.digest import digest
from records.tables.schemas import Row
from synth.episode.answers import assistant_message
from synth.episode.sessions import conversations_in
from synth.episode.tools.notes import NOTE_TOOLS
from synth.llm.client import Completion
from synth.llm.wire.answer import read_answer
from synth.rubrics.built_in import FORMAT
from synth.rubrics.criteria import FormatCheck, Rubric
from tool_specs.domains.catalogue import domain_row, tool_rows
from tool_specs.domains.domain import Domain
from tool_specs.domains.taxonomy import load_taxonomy
from tool_specs.importing.tool_lists import ToolListSource, rows_of_answer

RECORDED = Path(__file__).resolve().parent.parent / "tests" / "recorded"

MODEL = "claude"
"""Who wrote all of them (tests/recorded/README.md, benchmarks/minds/AUTHORS.md)."""

WORLDS = (
    *("clinic_desk", "plant_upkeep", "parcel_depot", "orchard_coop", "ticket_board"),
    *("bee_yards", "mooc_campus", "slitting_line", "travel_companion", "instrument_loans"),
    *("wildlife_rescue", "oncall_incidents", "ward_pharmacy", "boardgame_cafe"),
    *("ferry_crossings", "vaccine_outreach"),
)
"""Domains that the played tasks are of."""

Origin = Literal["played", "endings", "requests"]

PART = "part_of_a_longer_one"
OPEN_CALLS = "ends_with_open_calls"
"""Reasons why a recording is no conversation of its own."""


@dataclass(frozen=True)
class RecordedEpisode:
    name: str
    origin: Origin
    task: str
    """What it is an attempt at; unique within its origin."""
    messages: Sequence[Row]
    """In wire form, of all its conversations; each begins with the system prompt."""
    calls: Sequence[Row]
    """Rows of `tool_calls`, in call order, as far as they were recorded."""
    tools: Sequence[Row]
    """Rows of `tools`, notes apart."""
    rubric: Mapping[str, Any]
    domain: Row | None = None
    wishes: Sequence[str] = ()
    variant: str = "normal"
    is_fine: bool | None = None
    """What its writer, or the judge that it was played with, says of it; None: nobody did."""

    @property
    def known_as(self) -> str:
        return {True: "fine", False: "faulty", None: "not known"}[self.is_fine]

    @property
    def conversations(self) -> list[list[Row]]:
        return conversations_in(self.messages)

    @property
    def offered(self) -> list[Row]:
        """The tools that the agent saw."""
        return [*self.tools, *(NOTE_TOOLS if len(self.conversations) > 1 else ())]


class ReadRecordings(NamedTuple):
    episodes: list[RecordedEpisode]
    recordings: int
    """Lines, endings and requests that were read, a further conversation of an episode included."""
    left_out: Counter[str]
    """Recordings that are no conversation, by reason."""


def read_recordings(
    origins: Iterable[Origin] = ("played", "endings", "requests"),
) -> ReadRecordings:
    """Everything that is kept of these origins, in a fixed order."""
    episodes: list[RecordedEpisode] = []
    left_out: Counter[str] = Counter()
    for origin in origins:
        match origin:
            case "played":
                episodes += map(played_episode, json_lines("played.jsonl"))
            case "endings":
                episodes += [_ending(piece) for piece in pieces_in("development")]
            case "requests":
                found, why = episodes_of_requests(json_lines("agent_calls.jsonl"))
                episodes += found
                left_out += why
    conversations = sum(len(episode.conversations) for episode in episodes)
    return ReadRecordings(episodes, conversations + left_out.total(), left_out)


def json_lines(name: str) -> list[Row]:
    text = (RECORDED / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def played_episode(line: Mapping[str, Any]) -> RecordedEpisode:
    """Its tools are those of today's domain that have the recorded descriptions, in their order."""
    domain, rows = _offered_by(line["descriptions"])
    ids = [call["id"] for m in line["messages"] for call in m.get("tool_calls") or ()]
    calls = [
        call | {"tool_call_id": call_id} for call_id, call in zip(ids, line["calls"], strict=True)
    ]
    return RecordedEpisode(
        name=line["trajectory_id"],
        origin="played",
        task=line["trajectory_id"],
        messages=line["messages"],
        calls=calls,
        tools=rows,
        rubric=line["rubric"],
        domain=domain_row(domain),
        wishes=line["wishes"],
        variant=line["variant"],
        is_fine=line["accepted"],
    )


def _offered_by(descriptions: Sequence[str]) -> tuple[Domain, list[Row]]:
    """The domain that most of the tools are of, and all of them: some are another domain's."""
    found: dict[str, tuple[Domain, Row]] = {}
    for name in WORLDS:
        for row in tool_rows(domain := _domain(name)):
            if row["description"] in descriptions:
                found.setdefault(row["description"], (domain, row))
        if len(found) == len(descriptions):
            break
    if missing := [words for words in descriptions if words not in found]:
        raise ValueError(f"no domain of {', '.join(WORLDS)} has the tool {missing[0]!r}")
    [(own, _)] = Counter(found[words][0].name for words in descriptions).most_common(1)
    return _domain(own), [found[words][1] for words in descriptions]


@cache
def _domain(name: str) -> Domain:
    [domain] = load_taxonomy([name])
    return domain


def _ending(piece: Any) -> RecordedEpisode:
    scene = f"{piece.writer}-{piece.scene['scene']}"
    listed = [
        {
            "name": tool["name"],
            "description": tool["description"],
            "inputSchema": tool["parameters"],
            "annotations": {"readOnlyHint": not tool["changes"]},
        }
        for tool in piece.scene["tools"]
    ]
    return RecordedEpisode(
        name=piece.name,
        origin="endings",
        task=scene,
        messages=piece.messages,
        calls=piece.calls,
        tools=_imported(listed, scene),
        rubric=piece.rubric.model_dump(mode="json"),
        wishes=(piece.scene["wish"],),
        is_fine=piece.is_honest,
    )


def _imported(listed: Sequence[Row], server: str) -> list[Row]:
    """The rows that an import of the list makes. ValueError for one that it would not keep, since
    the conversation shows it."""
    return _rows_of_list(json.dumps(listed), server)


@cache
def _rows_of_list(listed: str, server: str) -> list[Row]:
    source = ToolListSource(
        server=server, category="recorded", license="Apache-2.0", may_write=True
    )
    rows = rows_of_answer(json.loads(listed), source)
    if dropped := [row["name"] for row in rows if row["drop_reason"] is not None]:
        raise ValueError(f"the import of {server} drops {', '.join(dropped)}")
    return rows


@dataclass
class _Request:
    """A recorded request with its answer as the agent's next message."""

    number: int
    messages: list[Row]
    tools: list[Row]
    answer: Row
    thoughts: dict[int, str] = field(default_factory=dict)
    """Place of a message -> the thought of the answer that it was."""

    def begins(self, other: "_Request") -> bool:
        """Whether the other one goes on from this one's answer."""
        at = len(self.messages)
        return (
            len(other.messages) > at
            and other.messages[:at] == self.messages
            and _said(other.messages[at]) == _said(self.answer)
        )


def episodes_of_requests(
    records: Sequence[Mapping[str, Any]],
) -> tuple[list[RecordedEpisode], Counter[str]]:
    """Conversations that end with words, and why the other recordings are none."""
    requests = [_request(number, record) for number, record in enumerate(records)]
    left_out: Counter[str] = Counter()
    episodes = []
    for one in requests:
        if longer := [other for other in requests if one.begins(other)]:
            left_out[PART] += 1
            for other in longer:
                if thought := one.answer.get("reasoning_content"):
                    other.thoughts[len(one.messages)] = thought
    for one in requests:
        if any(one.begins(other) for other in requests):
            continue
        if one.answer.get("tool_calls"):
            left_out[OPEN_CALLS] += 1
        else:
            episodes.append(_episode_of(one))
    return episodes, left_out


def _request(number: int, record: Mapping[str, Any]) -> _Request:
    """The answer is read as one that a server sends."""
    asked, given = record["request"], record["answer"]
    called = [{"function": {**call}} for call in given.get("tool_calls") or ()]
    message = {**given, "role": "assistant", "tool_calls": called}
    body = json.dumps({"choices": [{"message": message}]}).encode()
    answer = read_answer(body, call_prefix="call", fallback_usage=(0, 0))
    completion = Completion(
        content=answer.content,
        tool_calls=answer.tool_calls,
        reasoning=answer.reasoning,
        finish_reason=answer.finish_reason,
        model=MODEL,
        prompt_tokens=0,
        completion_tokens=0,
        cached=False,
    )
    before = sum(len(m.get("tool_calls") or ()) for m in asked["messages"])
    next_message = assistant_message(completion, num_calls=before)
    return _Request(number, asked["messages"], asked["tools"], dict(next_message))


def _said(message: Mapping[str, Any]) -> tuple[str, list[tuple[str, Any]]]:
    """Words and calls, without the ids and the spelling of arguments."""
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    return message["content"] or "", [(c["name"], json.loads(c["arguments"])) for c in calls]


def _episode_of(request: _Request) -> RecordedEpisode:
    messages = [*request.messages, request.answer]
    for place, thought in request.thoughts.items():
        messages[place] = messages[place] | {"reasoning_content": thought}
    name = f"request-{request.number}"
    listed = [
        {
            "name": tool["function"]["name"],
            "description": tool["function"]["description"],
            "inputSchema": tool["function"]["parameters"],
        }
        for tool in request.tools
    ]
    ends = "The assistant has the last word and answers in plain words, not in raw data."
    ending = FORMAT.criterion("format", ends, FormatCheck(), weight=1, mandatory=True)
    return RecordedEpisode(
        name=name,
        origin="requests",
        task=name,
        messages=messages,
        calls=_calls_in(messages),
        tools=_imported(listed, f"requests-{digest(listed)}"),
        rubric=Rubric(criteria=(ending,)).model_dump(mode="json"),
    )


def _calls_in(messages: Sequence[Row]) -> list[Row]:
    """Rows of `tool_calls` from messages alone. What a call changed is not known."""
    results = {m["tool_call_id"]: m["content"] for m in messages if m["role"] == "tool"}
    spoken = [m for m in messages if m["role"] == "assistant"]
    made = [(turn, call) for turn, m in enumerate(spoken, 1) for call in m.get("tool_calls") or ()]
    rows = []
    for index, (turn, call) in enumerate(made):
        code = _error_code(results[call["id"]])
        rows.append(
            {
                "call_index": index,
                "turn": turn,
                "tool_call_id": call["id"],
                "name": call["function"]["name"],
                "arguments": json.loads(call["function"]["arguments"]),
                "observation": results[call["id"]],
                "is_error": code is not None,
                "error_code": code,
                "policy_violations": [],
                "injected_outcome": "rate_limit" if code == "rate_limited" else None,
                "actor": "agent",
                "state_diff": [],
            }
        )
    return rows


def _error_code(observation: str) -> str | None:
    """Of an error in the one form in which the environment tells it."""
    try:
        return json.loads(observation)["error"]["code"]
    except (ValueError, KeyError, TypeError):
        return None
