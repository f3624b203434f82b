"""Stored trajectories put together to be read: the turns, and what was decided about them."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import duckdb

from records.digest import digest
from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.episode.delegation import message_tokens
from synth.publish.decisions import DecisionRule, decision_rule
from synth.publish.folding import TurnBlock, folded, same
from synth.publish.numbering import PageNumbers, call_anchor, call_words
from synth.publish.plans_shown import ShownPlan, plan_beside
from synth.publish.quotes import QuoteMarks, VerdictPlace, places_in, quotes_of, value_shown
from synth.publish.rows import rows_of
from synth.publish.verdicts_shown import (
    ShownCriterion,
    ShownDecision,
    ShownEvidence,
    ShownStatement,
    criteria_of,
    decision_on,
    statements_by_message,
)
from synth.render.evidence import EvidentChange, in_words
from synth.render.transcript import ShownChange, ShownTurn, turns_of
from synth.rubrics.standing import ECONOMY, USER_PART, standing_for


class ShownConversation(NamedTuple):
    row: Row
    """Typed columns of the trajectory and its newest curation; `world` is its domain or server."""
    turns: tuple[ShownTurn, ...]
    tools: tuple[str, ...]
    decision: ShownDecision
    statements: dict[int, tuple[ShownStatement, ...]]
    """The agent's, by `ShownTurn.place`."""
    criteria: tuple[ShownCriterion, ...]
    """Those that were not passed first."""
    numbers: PageNumbers
    plan: ShownPlan | None
    """None where the task has no reference plan."""

    @property
    def blocks(self) -> list[TurnBlock]:
        """Its turns; those that come again at once with the same findings are put together."""
        return folded(self.turns, lambda turn: (same(turn), self.statements_of(turn)))

    def statements_of(self, turn: ShownTurn) -> tuple[ShownStatement, ...]:
        """What was found of what the turn says."""
        return () if turn.place is None else self.statements.get(turn.place, ())

    @property
    def false_statements(self) -> list[tuple[int, ShownStatement]]:
        """With the numbers of their messages, in order."""
        return [
            (number, one)
            for number, turn in enumerate(self.turns, 1)
            for one in self.statements_of(turn)
            if one.is_true is False
        ]

    def changes_before(self, number: int) -> list[tuple[VerdictPlace, tuple[ShownChange, ...]]]:
        """The calls before a message that changed something, each with what it changed."""
        return [
            (VerdictPlace(call_anchor(t, c), call_words(t, c, call.name)), call.changes)
            for t, turn in enumerate(self.turns[: number - 1])
            for c, call in enumerate(turn.calls)
            if call.changes
        ]

    @property
    def played_calls(self) -> list[VerdictPlace]:
        """Those that a model answered in the place of a tool."""
        return [
            VerdictPlace(call_anchor(t, c), call_words(t, c, call.name))
            for t, turn in enumerate(self.turns)
            for c, call in enumerate(turn.calls)
            if "llm" in call.marks
        ]

    @property
    def marks(self) -> QuoteMarks:
        """What marks the quotes of its verdicts in its texts."""
        statements = [one for found in self.statements.values() for one in found]
        return QuoteMarks(quotes_of(self.criteria, statements))

    @property
    def places(self) -> list[VerdictPlace]:
        """Where the criterion that rejects it points; empty where none does."""
        failed = self.decision.failed
        steps = self.plan.steps if self.plan else ()
        planned = {one.made.anchor for one in steps if one.made and one.fate == "made"}
        return places_in(self.turns, failed, self.statements, planned) if failed else []


def read(dataset: Dataset, trajectory_ids: Sequence[str]) -> list[ShownConversation]:
    """The conversations with these ids, in this order; ids that are not there are left out."""
    with dataset.connect() as db:
        return read_from(db, trajectory_ids)


def read_from(
    db: duckdb.DuckDBPyConnection, trajectory_ids: Sequence[str]
) -> list[ShownConversation]:
    """As `read`, from the views of a dataset, or of those of its commits that tell of these ids."""
    ids = list(trajectory_ids)
    rows = {r["trajectory_id"]: r for r in rows_of(db, _TRAJECTORIES, [ids])}
    calls = [_logged(call) for call in rows_of(db, _CALLS, [ids])]
    verdicts = rows_of(db, _VERDICTS, [ids])
    rule = decision_rule(db)
    return [
        _conversation(
            rows[i],
            [c for c in calls if c["trajectory_id"] == i],
            [_parsed(v) for v in verdicts if v["trajectory_id"] == i],
            rule,
        )
        for i in ids
        if i in rows
    ]


def pick(dataset: Dataset, *, accepted: int, rejected: int, seed: int) -> list[str]:
    """Ids of trajectories that show what there is: worlds in turn, and reasons of rejection."""
    with dataset.connect() as db:
        rows = rows_of(db, _CHOICE)
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


def _conversation(
    row: Row, calls: Sequence[Row], verdicts: Sequence[Row], rule: DecisionRule
) -> ShownConversation:
    messages, tools = json.loads(row["messages"] or "[]"), json.loads(row["tools"] or "[]")
    rubric = json.loads(row["rubric"] or "{}")
    plan = json.loads(row["reference_plan"] or "null")
    judge_counts = row["decided_by"] != "code"
    here = [call for call in calls if call["here"]]
    turns = turns_of(messages, here, row["train_turns"])
    is_episode = row["trajectory_id"] == (row["episode_id"] or row["trajectory_id"])
    numbers = PageNumbers(turns, is_first=is_episode)
    standing = (c.model_dump() for c in (*standing_for(here), ECONOMY, USER_PART))
    asked = [*rubric.get("criteria", []), *standing]
    criteria = [
        _in_words(one, numbers, turns)
        for one in criteria_of(asked, verdicts, judge_counts=judge_counts)
    ]
    tokens = None
    if row["drop_reason"] == "token_budget" and row["token_budget"] is not None:
        tokens = sum(message_tokens(m) for m in messages if m["role"] != "system")
    return ShownConversation(
        row={k: v for k, v in row.items() if k not in _PARSED},
        turns=tuple(turns),
        tools=tuple(str(tool.get("function", {}).get("name")) for tool in tools),
        decision=decision_on(row, criteria, rule.threshold(rubric), tokens=tokens),
        statements=statements_by_message(verdicts, judge_counts=judge_counts) if is_episode else {},
        criteria=tuple(criteria),
        numbers=numbers,
        plan=None if plan is None else plan_beside(plan, calls, turns),
    )


_PARSED = ("messages", "tools", "rubric", "reference_plan")


def _in_words(
    one: ShownCriterion, numbers: PageNumbers, turns: Sequence[ShownTurn]
) -> ShownCriterion:
    """With code's evidence in words and in the numbers of the page."""

    def before(change: EvidentChange, field: str) -> Any:
        return value_shown(turns, change.id, field)

    def told(said: ShownEvidence) -> ShownEvidence:
        words = numbers.told(one.kind, said.words)
        return said._replace(words=in_words(one.kind, words, before))

    evidence = tuple(told(said) if said.by == "code" else said for said in one.evidence)
    return one._replace(evidence=evidence)


def _logged(call: Row) -> Row:
    return call | {"state_diff": json.loads(call["state_diff"] or "[]")}


def _parsed(verdict: Row) -> Row:
    return verdict | {"details": json.loads(verdict["details"] or "null")}


_TRAJECTORIES = """
SELECT t.* EXCLUDE (run_id, schema_version, fidelities, judge_standing),
  coalesce(t.server, d.name, t.domain_id, t.variant, '?') AS world,
  k.complexity, k.rubric, k.reference_plan, k.max_turns, k.token_budget
FROM trajectories AS t LEFT JOIN domains AS d USING (domain_id) LEFT JOIN tasks AS k USING (task_id)
WHERE list_contains($1, t.trajectory_id)"""

# an episode's calls stand under its id; each of its conversations shows those that were made in it,
# and what the plan asks for may have been done in any
_CALLS = """
SELECT t.trajectory_id, tool_call_id, call_index, c.executed_by, is_error, error_code,
  injected_outcome,
  policy_violations, actor, turn, name, arguments, observation, state_diff,
  coalesce(c.session, 0) = coalesce(t.session, 0)
    AND coalesce(c.parent_call_id = t.parent_call_id, t.parent_call_id IS NULL) AS here
FROM tool_calls AS c JOIN trajectories AS t
  ON c.trajectory_id = coalesce(t.episode_id, t.trajectory_id)
WHERE list_contains($1, t.trajectory_id) ORDER BY t.trajectory_id, call_index"""

# so do its verdicts, which are about all of its conversations
_VERDICTS = """
SELECT t.trajectory_id, criterion_id, v.kind, checked_by, mandatory, passed, evidence, quote,
  details, checker_version
FROM verdicts AS v JOIN trajectories AS t
  ON v.trajectory_id = coalesce(t.episode_id, t.trajectory_id) AND v.grading_id = t.grading_id
WHERE list_contains($1, t.trajectory_id) ORDER BY t.trajectory_id, criterion_id, checked_by"""

_CHOICE = """
SELECT trajectory_id, accepted, drop_reason, coalesce(server, domain_id) AS world
FROM trajectories ORDER BY trajectory_id"""
