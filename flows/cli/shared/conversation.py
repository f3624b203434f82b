"""One accepted conversation to be read on a terminal: what was said, and what each call changed.

The demo ends with it. `synth view` shows any trajectory, with its verdicts.
"""

import json
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from records.reading.query import run_sql
from records.store.dataset import Dataset
from synth.render.foreign_text import one_line, shortened, visible

WIDTH = 100
RESULT_CHARS = 200
"""Of what a tool answered; what it changed stands below it in full."""

LABEL = 7
"""Columns of who speaks."""

PICK = """
with calls as (
  select trajectory_id,
         count(*) filter (json_extract_string(state_diff, '$[0].entity') is not null) as changes,
         count(*) filter (injected_outcome <> '') as faults,
         count(*) filter (injected_outcome <> '' and recovered is not true) as unrecovered
  from tool_calls group by all having bool_and(actor = 'agent')
)
select trajectory_id, d.name
from trajectories t join calls using (trajectory_id) join domains d using (domain_id)
where accepted and changes >= 2 and unrecovered = 0
order by num_messages not between 10 and 16, faults = 0, num_user_turns < 2, trajectory_id
limit 1
"""
"""Two changes or more and no fault left open; best of a screen or two, with a fault that the agent
recovered from and a user who spoke twice. The same dataset gives the same one."""


class Told(NamedTuple):
    trajectory_id: str
    environment: str
    lines: list[str]


def worth_reading(dataset: Dataset) -> Told | None:
    """None where no accepted trajectory changed the state of a domain twice."""
    picked = run_sql(dataset, PICK).rows
    if not picked:
        return None
    i, environment = picked[0]
    [messages] = [t["messages"] for t in dataset.rows("trajectories") if t["trajectory_id"] == i]
    log = {c["tool_call_id"]: c for c in dataset.rows("tool_calls") if c["trajectory_id"] == i}
    return Told(i, environment, list(_lines(messages, log)))


def _lines(
    messages: list[Mapping[str, Any]], log: Mapping[str, Mapping[str, Any]]
) -> Iterator[str]:
    for message in messages:
        if message["role"] not in ("user", "assistant"):
            continue  # the system prompt is long, and results stand with their calls
        who = "agent" if message["role"] == "assistant" else "user"
        if message.get("content"):
            yield from _wrapped(who, visible(str(message["content"])))
        for asked in message.get("tool_calls") or ():
            if asked["id"] in log:
                yield from _call(log[asked["id"]])


def _call(call: Mapping[str, Any]) -> Iterator[str]:
    arguments = ", ".join(f"{name}={_json(value)}" for name, value in call["arguments"].items())
    yield from _wrapped("call", one_line(f"{call['name']}({arguments})"))
    yield from _wrapped("", f"-> {one_line(shortened(call['observation'] or '', RESULT_CHARS))}")
    if call["injected_outcome"]:
        yield from _wrapped("", f"(an injected fault: {call['injected_outcome']})")
    for change in call["state_diff"] or ():
        by_itself = f" by itself ({change['job']}, {change['at']})" if "job" in change else ""
        yield from _wrapped("", f"changed{by_itself}: {one_line(_words(change))}")


def _words(change: Mapping[str, Any]) -> str:
    """`issue ISS-1: column "backlog" -> "review"`, or what was created or deleted."""
    before, after = change.get("before") or {}, change.get("after") or {}
    row = f"{change.get('entity')} {change.get('id')}"
    if not before or not after:
        known = {k: v for k, v in (before or after).items() if v not in (None, [], {})}
        values = ", ".join(f"{name} {_json(value)}" for name, value in known.items())
        return f"{row} {'deleted' if before else 'created'}: {values}"
    moved = [f"{name} {_json(before.get(name))} -> {_json(after[name])}" for name in after]
    return f"{row}: {', '.join(moved)}"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _wrapped(label: str, text: str) -> Iterator[str]:
    lines = [
        piece
        for line in text.splitlines()
        for piece in textwrap.wrap(line, WIDTH - LABEL, break_on_hyphens=False) or [""]
    ]
    for number, line in enumerate(lines):
        yield f"{label if number == 0 else '':<{LABEL}}{line}".rstrip()
