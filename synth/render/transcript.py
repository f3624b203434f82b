"""A stored trajectory put together to be read: turns, calls with their results, criteria.

Texts are as they were written; what shows them makes them safe (synth.render.foreign_text,
autoescape).
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import duckdb

from records.digest import digest
from records.store.dataset import Dataset
from records.tables.schemas import Row

OWN_TOOLS = "user's own tools"
"""Role of turns that show what the user did unseen by the agent."""

LINE_CHARS = 100
"""Longer JSON is spread over lines."""


class ShownCall(NamedTuple):
    name: str
    arguments: str
    """Indented JSON, or the model's own text where that is no JSON."""
    result: str | None
    """None: the episode ended before an answer."""
    is_error: bool
    marks: tuple[str, ...]
    """What the log knows of the call: who executed it, error code, injected fault, rules broken."""


class ShownTurn(NamedTuple):
    role: str
    text: str
    reasoning: str
    calls: tuple[ShownCall, ...]
    trained: bool | None
    """Whether the turn carries loss; None where that was never decided."""


class JudgedCriterion(NamedTuple):
    criterion: str
    kind: str
    words: str
    mandatory: bool
    code: bool | None
    judge: bool | None
    evidence: tuple[str, ...]
    """Of each checker, with its name."""


class ShownConversation(NamedTuple):
    row: Row
    """Typed columns of the trajectory and its newest curation; `world` is its domain or server."""
    turns: tuple[ShownTurn, ...]
    tools: tuple[str, ...]
    criteria: tuple[JudgedCriterion, ...]


def read(dataset: Dataset, trajectory_ids: Sequence[str]) -> list[ShownConversation]:
    """The conversations with these ids, in this order; ids that are not there are left out."""
    with dataset.connect() as db:
        rows = {r["trajectory_id"]: r for r in _select(db, _TRAJECTORIES, trajectory_ids)}
        calls = _select(db, _CALLS, trajectory_ids)
        verdicts = _select(db, _VERDICTS, trajectory_ids)
    return [
        _conversation(
            rows[i],
            [c for c in calls if c["trajectory_id"] == i],
            [v for v in verdicts if v["trajectory_id"] == i],
        )
        for i in trajectory_ids
        if i in rows
    ]


def pick(dataset: Dataset, *, accepted: int, rejected: int, seed: int) -> list[str]:
    """Ids of trajectories that show what there is: worlds in turn, and reasons of rejection."""
    with dataset.connect() as db:
        rows = _select(db, _CHOICE, None)
    rows.sort(key=lambda row: digest(seed, row["trajectory_id"]))
    good = [row for row in rows if row["accepted"]]
    bad = [row for row in rows if row["accepted"] is False]
    return _varied(good, "world", accepted) + _varied(bad, "drop_reason", rejected)


def _varied(rows: Iterable[Row], column: str, limit: int) -> list[str]:
    """Ids of rows with values of the column that were seen least, first come first served."""
    groups: dict[Any, list[str]] = {}
    for row in rows:
        groups.setdefault(row[column], []).append(row["trajectory_id"])
    rounds = max(map(len, groups.values()), default=0)
    ids = [group[i] for i in range(rounds) for group in groups.values() if i < len(group)]
    return ids[:limit]


def turns_of(
    messages: Sequence[Mapping[str, Any]],
    log: Sequence[Row],
    train_turns: Sequence[bool] | None,
) -> list[ShownTurn]:
    """Turns with the results of their calls inside; `log` are rows of `tool_calls`. What the user
    did with its own tools stands in turns of their own, before what it said then."""
    calls = {call["tool_call_id"]: call for call in log}
    own: dict[int, list[Row]] = {}
    for call in log:
        if call["actor"] == "user":
            own.setdefault(call["turn"], []).append(call)
    agents = 0
    results = {m.get("tool_call_id"): m for m in messages if m.get("role") == "tool"}
    turns: list[ShownTurn] = []
    shown: set[Any] = set()
    for index, message in enumerate(messages):
        if message.get("role") == "tool" and message.get("tool_call_id") in shown:
            continue
        if message.get("role") == "user" and agents in own:
            turns.append(_own_turn(own.pop(agents)))
        agents += message.get("role") == "assistant"
        asked = message.get("tool_calls") or ()
        shown.update(call.get("id") for call in asked)
        trained = train_turns[index] if train_turns and index < len(train_turns) else None
        turns.append(
            ShownTurn(
                str(message.get("role")),
                _text(message.get("content")),
                _text(message.get("reasoning_content")),
                tuple(_call(call, results, calls) for call in asked),
                trained,
            )
        )
    return turns + [_own_turn(calls) for calls in own.values()]


def _own_turn(calls: Sequence[Row]) -> ShownTurn:
    made = tuple(
        ShownCall(
            name=_text(call["name"]),
            arguments=pretty(call["arguments"]),
            result=pretty(call["observation"]),
            is_error=bool(call["is_error"]),
            marks=("by the user, unseen by the agent", *_marks(call)),
        )
        for call in calls
    )
    return ShownTurn(OWN_TOOLS, "", "", made, None)


def _call(
    asked: Mapping[str, Any], results: Mapping[Any, Any], log: Mapping[str, Row]
) -> ShownCall:
    row, result = log.get(asked.get("id") or ""), results.get(asked.get("id"))
    function = asked.get("function") or {}
    return ShownCall(
        name=_text(function.get("name")),
        arguments=pretty(function.get("arguments")),
        result=None if result is None else pretty(result.get("content")),
        is_error=bool(row and row["is_error"]),
        marks=_marks(row) if row else (),
    )


def _marks(row: Row) -> tuple[str, ...]:
    marks = [row["executed_by"]] if row["executed_by"] else []
    if row["injected_outcome"]:
        marks.append(f"injected: {row['injected_outcome']}")
    if row["error_code"]:
        marks.append(f"error: {row['error_code']}")
    return (*marks, *(f"breaks rule: {rule}" for rule in row["policy_violations"] or ()))


def pretty(value: Any) -> str:
    """JSON, also inside text, on one line where it fits one; any other text as it is."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return value
    line = _text(value)
    if isinstance(value, str) or len(line) <= LINE_CHARS:
        return line
    return json.dumps(value, indent=2, ensure_ascii=False)


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _conversation(row: Row, calls: Sequence[Row], verdicts: Sequence[Row]) -> ShownConversation:
    messages, tools = json.loads(row["messages"] or "[]"), json.loads(row["tools"] or "[]")
    rubric = json.loads(row["rubric"] or "{}")
    return ShownConversation(
        row={k: v for k, v in row.items() if k not in ("messages", "tools", "rubric")},
        turns=tuple(turns_of(messages, calls, row["train_turns"])),
        tools=tuple(str(tool.get("function", {}).get("name")) for tool in tools),
        criteria=tuple(_criteria(rubric.get("criteria", []), verdicts)),
    )


def _criteria(rubric: Sequence[Row], verdicts: Sequence[Row]) -> list[JudgedCriterion]:
    """One line a criterion, failed ones first."""
    words = {c["id"]: c.get("words", "") for c in rubric}
    by_id: dict[str, list[Row]] = {}
    for verdict in verdicts:
        by_id.setdefault(verdict["criterion_id"], []).append(verdict)
    found = []
    for criterion, rows in by_id.items():
        passed = {row["checked_by"]: row["passed"] for row in rows}
        found.append(
            JudgedCriterion(
                criterion=criterion,
                kind=rows[0]["kind"],
                words=words.get(criterion, ""),
                mandatory=bool(rows[0]["mandatory"]),
                code=passed.get("code"),
                judge=passed.get("judge"),
                evidence=tuple(
                    f"{r['checked_by']}: {r['evidence']}" for r in rows if r["evidence"]
                ),
            )
        )
    return sorted(found, key=lambda judged: False not in (judged.code, judged.judge))


def _select(
    db: duckdb.DuckDBPyConnection, query: str, ids: Sequence[str] | None
) -> list[dict[str, Any]]:
    cursor = db.execute(query, [list(ids)] if ids is not None else [])
    names = [column[0] for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


_TRAJECTORIES = """
SELECT t.* EXCLUDE (run_id, schema_version, fidelities, judge_standing),
  coalesce(t.server, d.name, t.domain_id, '?') AS world,
  k.complexity, k.rubric
FROM trajectories AS t LEFT JOIN domains AS d USING (domain_id) LEFT JOIN tasks AS k USING (task_id)
WHERE list_contains($1, t.trajectory_id)"""

_CALLS = """
SELECT trajectory_id, tool_call_id, executed_by, is_error, error_code, injected_outcome,
  policy_violations,  actor, turn, name, arguments, observation
FROM tool_calls WHERE list_contains($1, trajectory_id) ORDER BY trajectory_id, call_index"""

_VERDICTS = """
SELECT trajectory_id, criterion_id, v.kind, checked_by, mandatory, passed, evidence
FROM verdicts AS v JOIN trajectories USING (trajectory_id, grading_id)
WHERE list_contains($1, trajectory_id) ORDER BY trajectory_id, criterion_id, checked_by"""

_CHOICE = """
SELECT trajectory_id, accepted, drop_reason, coalesce(server, domain_id) AS world
FROM trajectories ORDER BY trajectory_id"""
