"""Adds goals to a task until its plan has as many calls as its band takes.

Each further goal is one that a person in that matter would have: it names or changes a row that an
earlier goal is about, or one that refers to such a row or that such a row refers to. Nothing that
was shown already is asked again, nothing is done only to be undone, and a tool comes again for
other rows only.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from synth.rubrics.built_in import EpisodeCall
from synth.tasks.goals.building import Builder
from synth.tasks.goals.goals import Draft, Goal, Step
from synth.tasks.goals.knowledge import plain_values
from synth.tasks.goals.lookup import RowKey
from synth.tasks.goals.parts import parts_of
from synth.tasks.goals.waiting import rows_near
from synth.tasks.lengths import LEAST_CHAIN, Band
from synth.tasks.proof.chains import shape_of
from synth.tasks.proof.proving import UnprovedError

MOST_GOALS = 10
"""Wishes that one person brings at most."""

GOALS_OF_ONE_TOOL = 3
"""Goals on one tool in one task, at most."""

GOAL_TRIES = 24
"""Draws of the next goal, of which most come to none of the same matter."""

CHOICES = 3
"""Goals among which that of a long plan is taken: first for its chain, then for its calls."""

AddGoal = Callable[[Builder, Collection[str]], None]
"""Appends a goal on none of the tools that are named, or raises UnprovedError where there is none;
a goal with structure may be on any tool."""


def in_band(builder: Builder, band: Band, add: AddGoal) -> Builder:
    """The builder with further goals, its plan within the band.

    Raises UnprovedError("band_not_reached") where MOST_GOALS or what the state gives come to fewer
    calls.
    """
    wanted = builder.rng.randint(band.least, band.most)
    while len(builder.plan) < wanted and len(builder.goals) < MOST_GOALS:
        further = list(islice(_further(builder, band, add), CHOICES if band.is_long else 1))
        if not further:
            break
        builder = max(further, key=_reach) if len(further) > 1 else further[0]
    if not band.holds(len(builder.plan)):
        raise UnprovedError(
            "band_not_reached",
            f"{len(builder.plan)} calls of {len(builder.goals)} goals for {band}",
        )
    return builder


def _further(builder: Builder, band: Band, add: AddGoal) -> Iterator[Builder]:
    """Builders with one goal more, each another draw."""
    unfit = set[str]()
    for _ in range(GOAL_TRIES):
        trial = builder.fork()
        try:
            add(trial, unfit)
        except UnprovedError:
            return  # every tool at hand has been tried
        if len(trial.plan) <= band.most and _belongs(builder, trial):
            yield trial
        elif trial.goals[-1].form == "plain":
            unfit.add(trial.goals[-1].tool)


def _reach(builder: Builder) -> tuple[int, int]:
    """Chain, as far as a long plan needs one, then calls."""
    environment = builder.start.snapshot()
    calls = []
    for step in builder.plan:
        result = environment.call(step.tool, step.arguments)
        observation = result.observation
        calls.append(EpisodeCall(**step.model_dump(), observation=observation))
    draft = Draft(variant="normal", goals=tuple(builder.goals), initial_state={})
    return min(shape_of(draft, calls).longest_chain, LEAST_CHAIN), len(calls)


def _belongs(before: Builder, after: Builder) -> bool:
    """Whether the last goal of `after` is a further one of the matter that `before` is about."""
    goal = after.goals[-1]
    others = [other for other in before.goals if other.tool == goal.tool]
    if len(others) >= GOALS_OF_ONE_TOOL or any(step in before.plan for step in goal.steps):
        return False
    if not before.goals:
        return bool(after.recent)
    named = _named(after, goal)
    if goal.form != "corrected" and any(_named(after, other) == named for other in others):
        return False
    new = after.diffs[len(before.diffs) :]
    if goal.form != "corrected" and _is_as_before(before.diffs, new):
        return False
    changed = {(c["entity"], c["id"]) for c in new}
    matter = rows_near(before.environment, before.domain, before.recent)
    return not matter.isdisjoint(named | changed) and not _is_told(before, goal)


def _is_as_before(diffs: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a field is again what it was before one of the earlier changes: who buys tickets and
    gives them back has second thoughts, and says so."""
    once: dict[tuple[str, str, str], list[Any]] = {}
    for change in (change for change in diffs if change["op"] == "update"):
        for field in change["after"]:
            place = (change["entity"], change["id"], field)
            once.setdefault(place, []).append(change["before"][field])
    return any(
        value in once.get((change["entity"], change["id"], field), ())
        for change in new
        if change["op"] == "update"
        for field, value in change["after"].items()
    )


def _named(builder: Builder, goal: Goal) -> set[RowKey]:
    """The rows that the goal's own calls name."""
    params = builder.tools[goal.tool].spec.params if goal.tool in builder.tools else {}
    calls = [step.arguments for step in goal.steps if step.tool == goal.tool] or [goal.arguments]
    parts = (part for arguments in calls for part in parts_of(params, arguments))
    return {part.row for part in parts if part.row is not None}


def _is_told(before: Builder, goal: Goal) -> bool:
    """Whether the goal asks only for what earlier calls have shown."""
    wanted = [value for asked in goal.asks for value in asked.values]
    if goal.writes or not wanted:
        return False
    shown = _shown(before, before.plan)
    return all(value in shown for value in wanted)


def _shown(builder: Builder, steps: list[Step]) -> list[Any]:
    environment = builder.start.snapshot()
    results = [environment.call(step.tool, step.arguments) for step in steps]
    return [value for result in results for value in plain_values(result.observation)]
