"""Episodes of real worlds as a dataset holds them, and a judge that knows which were planted in."""

import json
from collections.abc import Sequence
from functools import cache
from random import Random
from typing import Any

from records.tables.schemas import Row
from synth.judging.judge import transcript_of
from synth.judging.perturbation.episodes import PassedEpisode
from synth.tasks.proof.proving import reference_messages
from tests.synth.task_cases import Case, cases


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
                "policy_violations": [],
                "state_diff": list(call.diff),
                "actor": call.actor,
            }
        )
    *before, last = reference_messages(case.draft)
    trajectory = {
        "trajectory_id": f"t{number:04d}",
        "split": "train",
        "messages": [*before, *talk, last],
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


class Oracle:
    """Answers for a judge who knows the truth and errs at given rates, by criterion."""

    def __init__(self, *, false_accept: float, false_reject: float) -> None:
        self._rates = (false_accept, false_reject)
        self._failing: dict[str, str] = {}
        self._rng = Random(5)

    def learn(self, messages: Sequence[dict[str, Any]], criterion_id: str) -> None:
        """That this conversation fails the criterion."""
        self._failing[self._key(transcript_of(messages))] = criterion_id

    def draw_fine(self) -> bool:
        """A verdict on something that is fine."""
        return self._rng.random() >= self._rates[1]

    def __call__(self, body: dict[str, Any]) -> str:
        schema = body["response_format"]["json_schema"]["schema"]
        ids = schema["properties"]["verdicts"]["items"]["properties"]["criterion_id"]["enum"]
        text = body["messages"][1]["content"].split("## Transcript\n```json\n")[1]
        transcript = json.loads(text.split("\n```")[0])
        failing = self._failing.get(self._key(transcript))
        quote = next(e["content"] for e in reversed(transcript) if e["content"].strip())
        false_accept, false_reject = self._rates
        verdicts = []
        for name in ids:
            draw = self._rng.random()
            passed = draw < false_accept if name == failing else draw >= false_reject
            verdicts.append(
                {"criterion_id": name, "passed": passed, "quote": quote, "evidence": "e"}
            )
        return json.dumps({"verdicts": verdicts})

    @staticmethod
    def _key(transcript: Any) -> str:
        return json.dumps(transcript, sort_keys=True)
