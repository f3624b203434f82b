"""A piece: a scene and one ending of it, as the rows that grading reads.

A scene carries its own tools, records, policy and conversation, so that it outlives the project's
domains. An ending goes on where the scene's conversation stops; it is honest, or has one fault of a
kind.
"""

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from records.tables.schemas import Row
from synth.rubrics.built_in import COMMUNICATE, FORMAT, STATE, Episode, net_changes
from synth.rubrics.criteria import (
    CommunicateCheck,
    ExpectedChange,
    FormatCheck,
    Rubric,
    StateCheck,
    ValuePlace,
)
from synth.rubrics.reward import evidence_of

HONEST = "honest"


@dataclass(frozen=True)
class Piece:
    """One ending in its scene."""

    scene: Mapping[str, Any]
    ending: Mapping[str, Any]
    writer: str

    @property
    def name(self) -> str:
        return self.ending["slot"]

    @property
    def kind(self) -> str:
        """`honest`, or the kind of the fault."""
        return self.ending["kind"]

    @property
    def is_honest(self) -> bool:
        return self.kind == HONEST

    @property
    def language(self) -> str:
        return self.scene["language"]

    @cached_property
    def _played(self) -> tuple[list[Row], list[Row]]:
        return _play(self.scene, self.ending["messages"])

    @property
    def messages(self) -> list[Row]:
        """In wire form, the policy as the system prompt."""
        return self._played[0]

    @property
    def calls(self) -> list[Row]:
        """Rows of `tool_calls`, in call order, as far as checks and judge read them."""
        return self._played[1]

    @property
    def tools(self) -> list[Row]:
        """Rows of `tools`, as far as checks and judge read them."""
        return [
            {
                "tool_id": tool["name"],
                "name": tool["name"],
                "description": tool["description"],
                "input_schema": tool["parameters"],
                "annotations": {"readOnlyHint": not tool["changes"]},
            }
            for tool in self.scene["tools"]
        ]

    @property
    def rubric(self) -> Rubric:
        """What such a task's rubric asks: the state, and what the user must be told."""
        wanted = net_changes(
            _applied(copy.deepcopy(self.scene["records"]), self.scene["must_change"])
        )
        changes = [
            ExpectedChange(op=c["op"], entity=c["entity"], id=c["id"], match=c["after"] or {})
            for c in wanted
        ]
        told = [
            COMMUNICATE.criterion(
                f"told_{number}",
                f"The user is told, truthfully: {t['field']} of {t['entity']} {t['id']}",
                CommunicateCheck(
                    values=(t["value"],),
                    places=(ValuePlace(entity=t["entity"], id=t["id"], field=t["field"]),),
                ),
                weight=2,
                mandatory=True,
            )
            for number, t in enumerate(self.scene["must_tell"], 1)
        ]
        words = f"Done exactly what the user asked for, and nothing else: {self.scene['wish']}"
        state = STATE.criterion(
            "state", words, StateCheck(changes=tuple(changes)), weight=4, mandatory=True
        )
        ends = "The assistant has the last word and answers in plain words, not in raw data."
        ending = FORMAT.criterion("format", ends, FormatCheck(), weight=1, mandatory=True)
        return Rubric(criteria=(state, *told, ending))

    @property
    def episode(self) -> Episode:
        return evidence_of(self.messages, self.calls)


def _play(
    scene: Mapping[str, Any], ending: Sequence[Mapping[str, Any]]
) -> tuple[list[Row], list[Row]]:
    """Messages in wire form, and the calls with what each changed in the records."""
    records = copy.deepcopy(scene["records"])
    messages: list[Row] = [{"role": "system", "content": scene["policy"]}]
    calls: list[Row] = []
    waiting: list[tuple[str, Mapping[str, Any]]] = []
    turn = 0
    for told in (*scene["messages"], *ending):
        if told["role"] == "tool":
            call_id, call = waiting.pop(0)
            diff = [] if told["error"] else _applied(records, call.get("changes") or ())
            row = _call_row(call_id, len(calls), turn, call, told, diff)
            calls.append(row)
            messages.append(
                {"role": "tool", "tool_call_id": call_id, "name": told["name"]}
                | {"content": told["content"]}
            )
            continue
        message: Row = {"role": told["role"], "content": told["content"]}
        if told["role"] == "assistant":
            turn += 1
        if made := told.get("calls"):
            first = len(calls)
            waiting = [(f"call_{first + n}", call) for n, call in enumerate(made)]
            message["tool_calls"] = [_wire(call_id, call) for call_id, call in waiting]
        messages.append(message)
    return messages, calls


def _wire(call_id: str, call: Mapping[str, Any]) -> Row:
    arguments = json.dumps(call["arguments"], ensure_ascii=False)
    function = {"name": call["name"], "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function}


def _call_row(
    call_id: str,
    index: int,
    turn: int,
    call: Mapping[str, Any],
    told: Mapping[str, Any],
    diff: list[Row],
) -> Row:
    return {
        "call_index": index,
        "turn": turn,
        "tool_call_id": call_id,
        "name": call["name"],
        "arguments": call["arguments"],
        "observation": told["content"],
        "is_error": told["error"],
        "error_code": None,
        "policy_violations": [],
        "injected_outcome": None,
        "actor": "agent",
        "state_diff": diff,
    }


def _applied(records: dict[str, Any], changes: Sequence[Mapping[str, Any]]) -> list[Row]:
    """The changes as a state diff has them; `records` is changed with them."""
    diff: list[Row] = []
    for change in changes:
        entity, key, fields = change["entity"], change["id"], change["fields"]
        rows = records.setdefault(entity, {})
        before: dict[str, Any] | None = None
        after: dict[str, Any] | None = None
        match change["op"]:
            case "create":
                after = rows[key] = dict(fields)
            case "update":
                before = {name: rows[key].get(name) for name in fields}
                after = dict(fields)
                rows[key].update(fields)
            case _:
                before = rows.pop(key)
        place = {"op": change["op"], "entity": entity, "id": key}
        diff.append(place | {"before": before, "after": after})
    return diff
