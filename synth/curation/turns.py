"""Which messages of a conversation carry loss, and what is wrong with those of the agent's that do
not. They stay where they are: what comes after them is learnt with them in context.

Code decides from the calls and the findings of the grading, by the rules that `curation.no_loss`
names. An injected error is nobody's fault: the call that met it was right, and so is trying again
after one that passes.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from records.digest import canonical_json
from records.tables.schemas import Row
from synth.curation.settings.config import AgentTurnFault
from synth.episode.tools.calls import FORMAT_ERRORS
from synth.rubrics.economy import PASSING
from synth.rubrics.refused import LASTING
from synth.rubrics.standing import TRUTH

BEFORE: tuple[AgentTurnFault, ...] = ("failing_call",)
"""The rules that there were before there was a setting."""

FALSE = ("contradicted", "not_shown")
"""Findings on statements that are false, or that nothing bears out."""


class FaultyTurn(NamedTuple):
    message: int
    """Its place in the conversation."""
    fault: AgentTurnFault


def train_turns(
    messages: Sequence[Mapping[str, Any]], faulty: Collection[FaultyTurn]
) -> list[bool]:
    """Loss flag per message: what the agent wrote, but for the faulty ones and those that whoever
    brought the conversation takes out of the loss (`weight` 0)."""
    without = {turn.message for turn in faulty}
    return [
        m["role"] == "assistant" and m.get("weight", 1) != 0 and at not in without
        for at, m in enumerate(messages)
    ]


def faulty_turns(
    messages: Sequence[Mapping[str, Any]],
    calls: Sequence[Row],
    no_loss: Collection[AgentTurnFault] = BEFORE,
    false_at: Collection[int] = (),
) -> tuple[FaultyTurn, ...]:
    """The faults of the agent's messages by the rules of `no_loss`, in the order of the messages.
    `calls`: rows of `tool_calls` of the episode, in call order; `false_at`: messages with a false
    statement."""
    by_call = {fault: _BY_CALL[fault](calls) for fault in no_loss if fault in _BY_CALL}
    found: list[FaultyTurn] = []
    for at, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        ids = {call["id"] for call in message.get("tool_calls") or ()}
        for fault in no_loss:
            is_false = fault == "false_statement" and at in false_at
            if is_false or not ids.isdisjoint(by_call.get(fault, ())):
                found.append(FaultyTurn(at, fault))
    return tuple(found)


def _failing(calls: Sequence[Row]) -> set[str]:
    return {c["tool_call_id"] for c in calls if c["is_error"] and not c["injected_outcome"]}


def _refused(calls: Sequence[Row]) -> set[str]:
    """Calls that never reached a tool, or that it did not take."""
    return {
        c["tool_call_id"]
        for c in calls
        if c["is_error"] and not c["injected_outcome"] and c["error_code"] in FORMAT_ERRORS
    }


def _repeated_failures(calls: Sequence[Row]) -> set[str]:
    """Calls that ask for the very same as one that failed before in the same conversation, and
    fail, while nothing was changed. After an error that says nothing of what was asked, trying
    again is right."""
    failed: set[tuple[Any, ...]] = set()
    repeated: set[str] = set()
    for call in calls:
        if _may_have_changed(call):
            failed.clear()
        passes = call["error_code"] in PASSING or call["injected_outcome"] not in (None, *LASTING)
        if not call["is_error"] or passes or call["actor"] != "agent":
            continue
        # a sub-agent, and who has been away, know nothing of what failed elsewhere
        asked_in = call["parent_call_id"], call["session"]
        asked = (*asked_in, call["name"], canonical_json(call["arguments"]))
        if asked in failed:
            repeated.add(call["tool_call_id"])
        failed.add(asked)
    return repeated


def _may_have_changed(call: Row) -> bool:
    """Whether something may be otherwise after a call. Where no state was seen, as of imported
    calls, anything that succeeded may have changed it."""
    is_unseen = call["state_hash_after"] is None and not call["is_error"]
    return bool(call["state_diff"]) or is_unseen


_BY_CALL: Mapping[AgentTurnFault, Callable[[Sequence[Row]], set[str]]] = {
    "failing_call": _failing,
    "refused_arguments": _refused,
    "repeated_failure": _repeated_failures,
}
"""Fault -> ids of the calls that have it."""


def false_statements(verdicts: Sequence[Row], *, judge_counts: bool) -> frozenset[int]:
    """Messages of the episode with a statement that is false, by what code found and, where its
    word counts, the judge. What the judge finds of a statement that code left open is told in its
    own row."""
    heard = [
        row
        for row in verdicts
        if row["criterion_id"] == TRUTH
        and (row["checked_by"] == "code" or (judge_counts and row["checked_by"] == "judge"))
    ]
    return frozenset(
        entry["message"]
        for row in heard
        for entry in row.get("details") or ()
        if entry["finding"] in FALSE
    )


def as_json(faulty: Collection[FaultyTurn]) -> list[dict[str, Any]]:
    """For the column `turn_faults`."""
    return [turn._asdict() for turn in faulty]
