"""Episodes of real worlds as a dataset holds them; models that write, read and judge by a mark."""

import json
from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

from records.tables.schemas import Row
from synth.judging.perturbation.episodes import PassedEpisode
from synth.tasks.proof.proving import reference_messages
from tests.synth.judging.answers import NO_CAUSE
from tests.synth.task_cases import Case, cases

MARK = "The moon is made of basalt, as our records have it."
"""What the scripted writer puts into a reply."""


@cache
def sources() -> tuple[PassedEpisode, ...]:
    """One that passed by code for each task of the built-in domains that are tried here."""
    return tuple(source_of(number, case) for number, case in enumerate(cases()))


def source_of(number: int, case: Case) -> PassedEpisode:
    episode = case.play()
    rows: list[Row] = []
    talk: list[Row] = []
    for index, call in enumerate(episode.calls):
        call_id = f"call_{index}"
        observation = json.dumps(call.observation)
        shown = {"name": call.tool, "arguments": json.dumps(call.arguments)}
        asked = {"id": call_id, "type": "function", "function": shown}
        talk += [
            {"role": "assistant", "content": "", "tool_calls": [asked]},
            {"role": "tool", "tool_call_id": call_id, "name": call.tool, "content": observation},
        ]
        rows.append(
            {
                "turn": call.turn,
                "call_index": index,
                "tool_call_id": call_id,
                "name": call.tool,
                "arguments": call.arguments,
                "observation": observation,
                "is_error": call.is_error,
                "injected_outcome": None,
                "policy_violations": [],
                "state_diff": list(call.diff),
                "actor": call.actor,
            }
        )
    *before, last = reference_messages(case.draft)
    system = {"role": "system", "content": "You serve the people who turn to the desk."}
    trajectory = {
        "trajectory_id": f"t{number:04d}",
        "split": "train",
        "messages": [system, *before, *talk, last],
    }
    task: Row = {"task_id": f"k{number}", "variant": case.draft.variant}
    task["rubric"] = case.rubric.model_dump(mode="json")
    tools = [
        {
            "name": name,
            "description": program.spec.description,
            "input_schema": {"type": "object", "properties": {}},
            "annotations": {"readOnlyHint": program.read_only},
        }
        for name, program in case.tools.items()
    ]
    return PassedEpisode(trajectory, rows, task, tools)


def asked_for(body: dict[str, Any]) -> str:
    """The name of the form of answer that a request asks for."""
    return body["response_format"]["json_schema"]["name"]


def section(body: dict[str, Any], heading: str) -> Any:
    text = body["messages"][1]["content"].split(f"## {heading}\n```json\n")[1]
    return json.loads(text.split("\n```")[0])


def writes(body: dict[str, Any]) -> str:
    """A fault: the mark behind the reply; a paraphrase: the reply, politely."""
    if asked_for(body) == "paraphrase":
        return json.dumps({"reply": f"Gladly. {section(body, 'Reply')}"})
    reply = f"{section(body, 'Reply to edit')} {MARK}"
    answer = {"why": "w", "has_place": True, "result": "", "reply": reply, "wrong": MARK}
    return json.dumps(answer)


def reads(body: dict[str, Any]) -> str:
    """The ending with the mark is faulty, else the one with less in it."""
    endings = {name: section(body, f"Ending {name.upper()}")["transcript"] for name in "ab"}
    told = {name: " ".join(str(e["content"]) for e in ending) for name, ending in endings.items()}
    marked = [name for name, text in told.items() if MARK in text]
    if marked:
        return json.dumps({"evidence": "e", "quote": MARK, "faulty": marked[0]})
    return json.dumps({"evidence": "e", "quote": "", "faulty": "neither"})


class JudgeAtRates:
    """Fails what holds the mark, or nothing of what it is asked, but for errors at given rates."""

    def __init__(self, *, false_accept: float, false_reject: float) -> None:
        self._rates = (false_accept, false_reject)
        self._rng = Random(5)

    def __call__(self, body: dict[str, Any]) -> str:
        schema = body["response_format"]["json_schema"]["schema"]["properties"]
        ids = schema["verdicts"]["items"]["properties"]["criterion_id"]["enum"]
        transcript = section(body, "Transcript")
        statements = section(body, "Statements of the assistant")
        is_faulty = any(MARK in str(entry.get("content")) for entry in transcript)
        false_accept, false_reject = self._rates
        draw = self._rng.random()
        rejects = draw >= false_accept if is_faulty else draw < false_reject
        quote = next(e["content"] for e in reversed(transcript) if e.get("content"))
        found = [
            {
                "id": s["id"],
                "evidence": "e",
                "quote": "",
                "finding": "not_shown"
                if rejects and (not is_faulty or s["says"] in MARK)
                else "follows",
            }
            for s in statements
        ]
        verdicts = [
            {"criterion_id": name, "evidence": "e", "quote": quote[:900], "passed": True}
            for name in ids
        ]
        lists = {"no_claim": [], "met": []}
        answer = {"statements": found, "verdicts": verdicts, "cause": NO_CAUSE}
        return json.dumps(answer | lists)


def players(
    *,
    judge: Callable[[dict[str, Any]], str] | None = None,
    write: Callable[[dict[str, Any]], str] = writes,
    read: Callable[[dict[str, Any]], str] = reads,
) -> Callable[[dict[str, Any]], str]:
    """Who answers what a trial asks; without errors unless another player is given."""
    decide = judge or JudgeAtRates(false_accept=0.0, false_reject=0.0)
    by_form = {
        "written_fault": write,
        "paraphrase": write,
        "second_reading": read,
        "judgement": decide,
    }
    return lambda body: by_form[asked_for(body)](body)
