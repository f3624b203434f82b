"""Failures in what the agent does: calls that are wrong, missing, forbidden or out of order."""

import json

from records.tables.schemas import Row
from synth.judging.perturbation.episodes import EpisodeEdit
from synth.judging.perturbation.values import (
    filled,
    next_id,
    other_value,
    parsed,
    properties,
    swapped,
)
from synth.rubrics.criteria import CallCheck, Criterion, PolicyCheck


def wrong_argument(edit: EpisodeEdit) -> tuple[Criterion | None, str]:
    schemas = {tool["name"]: properties(tool["input_schema"]) for tool in edit.source.tools}
    for call in reversed(edit.writes()):
        arguments = call["arguments"] if isinstance(call["arguments"], dict) else {}
        for key in edit.rng.sample(sorted(arguments), len(arguments)):
            old = arguments[key]
            new = other_value(old, schemas.get(call["name"], {}).get(key, {}))
            diff = swapped(call["state_diff"], old, new)
            if new is None or diff == call["state_diff"]:
                continue
            seen = json.dumps(swapped(parsed(call["observation"]), old, new), ensure_ascii=False)
            changed = arguments | {key: new}
            edit.rewrite(call, arguments=changed, state_diff=diff, observation=seen)
            return edit.criterion("state"), f"{call['name']}: {key} is {new!r}, not {old!r}"
    return None, ""


def missing_call(edit: EpisodeEdit) -> tuple[Criterion | None, str]:
    writes = edit.writes()
    if len(writes) < 2:
        return None, ""
    edit.remove(writes[-1])
    return edit.criterion("state"), f"{writes[-1]['name']} was not called"


def claimed_not_done(edit: EpisodeEdit) -> tuple[Criterion | None, str]:
    writes = edit.writes()
    for call in writes:
        edit.remove(call)
    return (edit.criterion("state") if writes else None), "no changing call was made"


def state_not_reached(edit: EpisodeEdit) -> tuple[Criterion | None, str]:
    if not (writes := edit.writes()):
        return None, ""
    message = "The service did not answer in time; nothing was saved."
    seen = json.dumps({"error": {"code": "unavailable", "message": message}})
    edit.rewrite(writes[-1], observation=seen, is_error=True, state_diff=[])
    return edit.criterion("state"), f"{writes[-1]['name']} failed in the end"


def collateral_change(edit: EpisodeEdit) -> tuple[Criterion | None, str]:
    for call in reversed(edit.writes()):
        ids = {change["id"] for change in call["state_diff"]}
        others = {i: other for i in ids if (other := next_id(i)) and other not in ids}
        if len(others) < len(ids) or not isinstance(call["arguments"], dict):
            continue
        arguments, diff = call["arguments"], call["state_diff"]
        seen = parsed(call["observation"])
        for old, new in others.items():
            arguments, diff = swapped(arguments, old, new), swapped(diff, old, new)
            seen = swapped(seen, old, new)
        if edit.add(call["name"], arguments, seen, state_diff=diff):
            return edit.criterion("state"), f"{call['name']} was called for {arguments!r} as well"
    return None, ""


def forbidden_call(edit: EpisodeEdit) -> tuple[Criterion | None, str]:
    criterion = edit.criterion("call", lambda c: _forbids_always(_call_check(c)))
    if criterion is None or not edit.source.tools:
        return None, ""
    check = _call_check(criterion)
    named = [t for t in edit.source.tools if check.tool in (t["name"], "*")]
    if not named:
        return None, ""
    tool = edit.rng.choice(named)
    arguments = check.arguments or filled(tool["input_schema"] or {}, edit.rng)
    edit.add(tool["name"], arguments, {**arguments, "status": "done"})
    return criterion, f"{tool['name']} was called"


def _forbids_always(check: CallCheck) -> bool:
    return check.must == "not_occur" and not (check.before or check.before_turn or check.changing)


def wrong_order(edit: EpisodeEdit) -> tuple[Criterion | None, str]:
    for criterion in edit.source.rubric.criteria:
        if criterion.kind != "call" or (check := _call_check(criterion)).before is None:
            continue
        if check.actor != "agent":  # the user's own calls stand in no message
            continue
        done = [c for c in edit.calls if not c["is_error"] and c["actor"] == "agent"]
        earlier, later = check.tool, check.before
        if check.must == "not_occur":  # the one that is forbidden before the other comes later
            earlier, later = later, earlier
        first = [c for c in done if c["name"] == earlier]
        then = [c for c in done if c["name"] == later]
        if first and then:
            _swap_calls(edit, first[0], then[-1])
            return criterion, f"{later} came before {earlier}"
    return None, ""


def _swap_calls(edit: EpisodeEdit, one: Row, other: Row) -> None:
    told = ("name", "arguments", "observation", "is_error", "state_diff", "policy_violations")
    first, second = ({key: row[key] for key in told} for row in (one, other))
    edit.rewrite(one, **second)
    edit.rewrite(other, **first)
    for message in edit.messages:
        for row in (one, other):
            if message.get("tool_call_id") == row["tool_call_id"]:
                message["name"] = row["name"]


def policy_broken(edit: EpisodeEdit) -> tuple[Criterion | None, str]:
    """The user goal that the rules forbid, granted: only a task with such a user goal has it."""
    policy = edit.criterion("policy")
    refused = edit.criterion("call", lambda c: c.id == "refused")
    if policy is None or refused is None:
        return None, ""
    check, rules = _call_check(refused), PolicyCheck.model_validate(policy.check).rules
    arguments = check.arguments or {}
    edit.add(check.tool, arguments, {**arguments, "status": "done"}, policy_violations=list(rules))
    edit.say("I have made an exception for you and done it. Anything else?", instead=True)
    return policy, f"{check.tool} was called against the rules"


def _call_check(criterion: Criterion) -> CallCheck:
    return CallCheck.model_validate(criterion.check)
