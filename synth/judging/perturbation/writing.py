"""A model writes perturbed negatives and paraphrases: requests to the role `generator`.

What it writes is kept as data (`WrittenEdit`), from which the edited episode is made again: the
next judge is tried with the same words.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from records.seeds import rng_of
from records.tables.schemas import Row
from synth.judging.perturbation.episodes import (
    EpisodeEdit,
    PassedEpisode,
    report_in,
    reported_in,
)
from synth.judging.perturbation.faults import EditedResult, ReplyFault, call_to_edit
from synth.llm.client import LLM
from synth.llm.structured import InvalidOutputError
from synth.prompts.templates import render

WRITTEN_BY = "generator"
"""The role that writes, and reads a second time."""

PROMPTS = ("fault_writing", "paraphrase", "second_reading")
"""What that role is asked."""

STYLES = (
    "terse: no more words than are needed",
    "warm: friendly, a little chatty",
    "formal: like a business letter",
    "structured: with bullets and bold words",
    "casual: plain spoken",
    "clumsy: slightly awkward, as a second-language writer would write, but correct",
    "thorough: long, with every step explained",
)
"""Of paraphrases: a style is no fault."""

_AS_TEXT = (
    " Give its new result whole, as text in the form in which results stand in the transcript."
    " Where the reply is then wrong as it stands, leave it so."
)

_RESULTS: dict[EditedResult, str] = {
    "failed": "fails and changes nothing. An error has the form"
    ' {"error": {"code": "...", "message": "..."}}; where it failed already, leave `result` empty.'
    + _AS_TEXT,
    "empty": "finds nothing (an empty list, an unknown id)." + _AS_TEXT,
    "taken_out": "was never made: it is taken out of the conversation with its result, and what the"
    " user wanted of it is left undone. Leave `result` empty.",
}
"""What follows the name of the call."""


@dataclass(frozen=True, slots=True)
class EpisodeShown:
    """What a model is shown of an episode."""

    instructions: str
    tools: Sequence[Mapping[str, Any]]
    changes: Sequence[Mapping[str, Any]]
    """What each call truly changed."""
    transcript: Sequence[Mapping[str, Any]]


class WrittenEdit(NamedTuple):
    reply: str
    """The edited reply, whole."""
    result: str = ""
    """What the call that the fault is about returns instead; empty where it returns what it did."""
    wrong: str = ""
    """The words of the reply that are wrong; empty where words are missing, or none is wrong."""
    why: str = ""


class EditedEpisode(NamedTuple):
    messages: list[Row]
    calls: list[Row]


async def write_fault(
    llm: LLM, episode: PassedEpisode, shown: EpisodeShown, fault: ReplyFault, *, item: str
) -> WrittenEdit | None:
    """The reply that reports, edited so that it has the fault; None where the writer finds no place
    for it. ItemError where its answers fit no edit."""
    reply = reported_in(episode.trajectory["messages"])

    def check(answer: Any) -> None:
        if answer["has_place"] and (problem := _problem(answer, reply, fault)):
            raise InvalidOutputError(problem)

    talk = render(
        "fault_writing",
        instructions=shown.instructions,
        tools=shown.tools,
        changes=shown.changes,
        transcript=shown.transcript,
        reply=reply,
        fault={"fault": fault.what, "stays": fault.keep},
        result=_result_wanted(fault, episode),
    ).messages
    answer = await llm.structured(
        WRITTEN_BY,
        talk,
        item=item,
        step=f"fault_{fault.name}",
        name="written_fault",
        schema=_FAULT_SCHEMA,
        check=check,
    )
    if not answer["has_place"]:
        return None
    result = answer["result"] if fault.result else ""
    return WrittenEdit(answer["reply"], result, answer["wrong"], answer["why"])


def _result_wanted(fault: ReplyFault, episode: PassedEpisode) -> str:
    """In words, what becomes of a call; empty where every call stays as it is."""
    call = call_to_edit(fault.result, episode)
    if call is None or fault.result is None:
        return ""
    arguments = json.dumps(call["arguments"], ensure_ascii=False)
    return f"The call {call['name']} {arguments} {_RESULTS[fault.result]}"


def _problem(answer: Mapping[str, Any], reply: str, fault: ReplyFault) -> str | None:
    written, wrong = answer["reply"], answer["wrong"]
    if not written.strip():
        return "reply is empty"
    if written == reply and fault.result not in ("failed", "empty"):
        return "reply is the one to edit, unchanged"
    if fault.result == "empty" and not answer["result"].strip():
        return "result is empty; give the whole result of the call that finds nothing"
    if wrong and wrong not in written:
        return f"wrong = {wrong!r} does not stand in reply"
    if not wrong and not fault.omits:
        return "wrong is empty; copy the words of reply that are wrong"
    return None


async def write_paraphrase(
    llm: LLM, episode: PassedEpisode, shown: EpisodeShown, *, item: str
) -> WrittenEdit:
    """The reply that reports in other words, in a style drawn for the item."""
    style = rng_of(item, "style").choice(STYLES)
    talk = render(
        "paraphrase",
        transcript=shown.transcript,
        reply=reported_in(episode.trajectory["messages"]),
        style=style,
    ).messages
    answer = await llm.structured(
        WRITTEN_BY, talk, item=item, step="paraphrase", name="paraphrase", schema=_REPLY_SCHEMA
    )
    return WrittenEdit(answer["reply"], why=f"in other words, {style}")


def with_edit(
    episode: PassedEpisode, edit: WrittenEdit, result: EditedResult | None = None
) -> EditedEpisode:
    """The episode with the edit in it. `result`: what becomes of the call of the fault."""
    made = EpisodeEdit(episode, rng_of(episode.trajectory["trajectory_id"], "written"))
    place = report_in(made.messages)
    if place is None:
        raise ValueError("the episode has no reply to edit")
    made.messages[place]["content"] = edit.reply
    call = call_to_edit(result, episode)
    if call is not None:
        own = next(row for row in made.calls if row["tool_call_id"] == call["tool_call_id"])
        if result == "taken_out":
            made.remove(own)
        elif edit.result.strip():
            failed = {"is_error": True, "state_diff": []} if result == "failed" else {}
            made.answer(own, edit.result, **failed)
    return EditedEpisode(made.messages, made.calls)


def schema_of(**properties: dict[str, Any]) -> dict[str, Any]:
    """Of an object that has all of the properties and no other."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


TEXT = {"type": "string"}

_FAULT_SCHEMA = schema_of(
    why=TEXT, has_place={"type": "boolean"}, result=TEXT, reply=TEXT, wrong=TEXT
)
_REPLY_SCHEMA = schema_of(reply=TEXT)
