"""The proof of a task: its reference plan, executed from its own initial state, reaches what the
rubric asks for, and uses nothing that the user did not say or an earlier answer did not show.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from synth.rubrics.built_in import EpisodeCall, Kinds, PolicyViolation, episode_of
from synth.rubrics.criteria import EqualRows, Rubric
from synth.tasks.goals.domain_tools import DomainTool
from synth.tasks.goals.equal_rows import AmbiguousRowError, equal_rows
from synth.tasks.goals.goals import Draft, Proof
from synth.tasks.goals.knowledge import plain_values
from synth.tasks.goals.rubrics import left_open, rubric_of
from synth.tasks.proof.chains import needed_values, shape_of, shows
from synth.tasks.proof.extensions import NO_EXTENSIONS, Extensions
from synth.tasks.proof.pace import (
    DependsOnTimeError,
    at_any_pace,
    check_answers,
    played,
    slow_plays,
)
from tool_specs.domains.domain import Domain

HARMFUL = 1
"""Tools that a rubric forbids by name, at most."""


class UnprovedError(Exception):
    """Why a draft is no task: a snake_case word that counts group by."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason


def prove(
    domain: Domain,
    draft: Draft,
    tools: Mapping[str, DomainTool],
    extensions: Extensions = NO_EXTENSIONS,
    *,
    own: Sequence[DomainTool] = (),
) -> Proof:
    """Execute the draft in a fresh environment and check its own rubric on it; where time passes,
    at the pace of the fastest agent and at that of the slowest.

    `tools` are the agent's, `own` the user's. Raises UnprovedError.
    """
    for step in draft.plan:
        at_hand = tools if step.actor == "agent" else {tool.name for tool in own}
        if step.tool not in at_hand:
            raise UnprovedError("tool_not_at_hand", step.tool)
    calls, broken, failure = fast = played(domain, draft, {})
    if failure is not None:
        raise UnprovedError("plan_fails", failure)
    changes = fast.changes
    _need_effect(draft, changes)
    try:
        slow = slow_plays(domain, draft)
        if slow:
            check_answers(draft, [fast, *slow])
        changes = at_any_pace(changes, [play.changes for play in slow])
    except DependsOnTimeError as error:
        raise UnprovedError("depends_on_time", str(error)) from None
    made = {
        change["id"]
        for change in changes
        if change["op"] == "create" and domain.entities[change["entity"]].prefix is not None
    }
    rubric = rubric_of(
        draft,
        changes,
        made_ids=frozenset(made),
        rules=[rule.id for rule in domain.policy if rule.tool in tools],
        forbidden=_harmful(draft, tools),
        further=extensions.criteria(draft),
        free=left_open(draft, tools, calls),
        equal=_equal(domain, draft, tools),
    )
    check_passes(rubric, draft, calls, extensions.kinds, broken=broken)
    check_derivable(draft, calls)
    for play in slow:
        try:
            check_passes(rubric, draft, play.calls, extensions.kinds, broken=play.broken)
            check_derivable(draft, play.calls)
        except UnprovedError as error:
            raise UnprovedError("depends_on_time", str(error)) from None
    bearing = {goal.tool for goal in draft.goals} | {step.tool for step in draft.plan}
    return Proof(
        rubric=rubric,
        observed_chars=observed_chars(calls),
        num_rules=sum(len(domain.rules.get(name, ())) for name in bearing),
        **shape_of(draft, calls)._asdict(),
    )


def _equal(domain: Domain, draft: Draft, tools: Mapping[str, DomainTool]) -> tuple[EqualRows, ...]:
    try:
        return equal_rows(domain, draft, tools)
    except AmbiguousRowError as error:
        raise UnprovedError("ambiguous_row", str(error)) from None


def observed_chars(calls: Iterable[EpisodeCall]) -> int:
    return sum(
        len(call.observation)
        if isinstance(call.observation, str)
        else len(json.dumps(call.observation, ensure_ascii=False))
        for call in calls
    )


def _need_effect(draft: Draft, changes: Sequence[dict[str, Any]]) -> None:
    writes = any(goal.writes and goal.possible for goal in draft.goals)
    if writes and not changes:
        raise UnprovedError("no_net_effect")


def _harmful(draft: Draft, tools: Mapping[str, DomainTool]) -> list[str]:
    """Tools that delete what the plan is about and that the plan does not use."""
    used = {step.tool for step in draft.plan} | {goal.tool for goal in draft.goals}
    about = {
        write.entity
        for goal in draft.goals
        if goal.tool in tools
        for write in tools[goal.tool].writes
    }
    return [
        name
        for name, tool in sorted(tools.items())
        if name not in used
        and any(write.op == "delete" and write.entity in about for write in tool.writes)
    ][:HARMFUL]


def reference_messages(draft: Draft) -> list[dict[str, Any]]:
    """A conversation that ends as it should: the user goal, and a closing word with every
    answer."""
    parts = [
        f"{asked.label}: {', '.join(map(str, asked.values))}."
        for goal in draft.goals
        for asked in goal.asks
    ]
    parts += [
        f"Thank you for doing your part: {', '.join(map(str, step.arguments.values()))}."
        for step in draft.user_steps
    ]
    opening = "All done." if draft.solvable else "I am sorry, I cannot do all of that."
    messages = [{"role": "user", "content": "Please help me."}]
    if draft.goals[0].could_be:
        messages += [
            {"role": "assistant", "content": "What would you like me to do?"},
            {"role": "user", "content": "I will tell you."},
        ]
    return [*messages, {"role": "assistant", "content": " ".join([opening, *parts])}]


def check_passes(
    rubric: Rubric,
    draft: Draft,
    calls: Sequence[EpisodeCall],
    kinds: Kinds,
    *,
    broken: Sequence[PolicyViolation] = (),
    changes: Sequence[dict[str, Any]] | None = None,
    tests: Mapping[str, str | None] | None = None,
) -> None:
    """Every criterion that code can check passes on the reference; else UnprovedError."""
    messages = reference_messages(draft)
    episode = episode_of(messages, calls, changes=changes, policy_violations=broken, tests=tests)
    for criterion_id, verdict in kinds.check_all(rubric, episode).items():
        if not verdict.passed:
            raise UnprovedError("fails_own_rubric", f"{criterion_id}: {verdict.evidence}")


def check_derivable(
    draft: Draft, calls: Sequence[EpisodeCall], *, given: Sequence[str] = ()
) -> None:
    """Every value in the plan was said by the user or shown by an earlier answer, or stands in
    the `given` texts that the agent starts with. Of the user's own calls only the user sees what
    they return."""
    said = [*given, *(fact.value for goal in draft.goals for fact in goal.known)]
    seen: list[Any] = []
    for call in calls:
        for value in needed_values(draft, call):
            if not any(shows(source, value) for source in (*said, *seen)):
                raise UnprovedError("underivable_argument", f"{call.tool}: {value!r}")
        if call.actor == "agent":
            seen += plain_values(call.observation)
