"""The proof of a task for a real MCP server: its plan, executed on a fresh one.

The state tells what changed, the answers what the user is to hear. Nothing is assumed of the server
but what it did. Where the state does not show an effect, the server's own reading tools have to,
and the episode is checked by the calls that it made.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from sandboxes.mcp.servers import Communicated, GoalCall, ServerConfig, ServerGoal
from synth.episode.tools.cassette import ServerForProof
from synth.rubrics.built_in import CALL, EpisodeCall, StateChange, mentions, state_changes
from synth.rubrics.criteria import CallCheck, Criterion, Incidental
from synth.tasks.goals.goals import Asked, Draft, Goal, Proof, Step
from synth.tasks.goals.knowledge import plain_values
from synth.tasks.goals.rubrics import rubric_of
from synth.tasks.proof.chains import shape_of, shows
from synth.tasks.proof.extensions import NO_EXTENSIONS, Extensions
from synth.tasks.proof.proving import (
    UnprovedError,
    check_derivable,
    check_passes,
    observed_chars,
)
from synth.tasks.servers.drafting import ServerDraft, label_of

NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.]*\w)")
"""In an answer, standing by itself."""

LONGEST_NUMBER = 300
"""Characters of one that is read as a number: nobody passes on a longer one by its value."""


class PlayedGoals(NamedTuple):
    """What executing goals one after the other on one server came to."""

    calls: tuple[tuple[EpisodeCall, ...], ...]
    """Of each goal."""

    changes: list[dict[str, Any]]
    """Of the state, from before the first call to after the last."""

    before: dict[str, Any]
    """The state at the start."""

    seen: tuple[bool, ...]
    """Of each goal, whether the calls that are to show its effect answer otherwise afterwards."""


async def play(
    server: ServerForProof,
    goals: Sequence[ServerGoal | None],
    plans: Sequence[Sequence[Step]],
) -> PlayedGoals:
    """Execute the plans, one for each goal, on the server.

    UnprovedError("plan_fails") where a call is an error, TransientError for the server's failure.
    """
    before = await server.state()
    shown = [await _answers(server, goal.seen_by if goal else ()) for goal in goals]
    calls: list[tuple[EpisodeCall, ...]] = []
    for plan in plans:
        made: list[EpisodeCall] = []
        for step in plan:
            result = await server.call(step.tool, step.arguments)
            if result.is_error:
                raise UnprovedError("plan_fails", f"{step.tool}: {result.text[:300]}")
            made.append(
                EpisodeCall(tool=step.tool, arguments=step.arguments, observation=result.text)
            )
        calls.append(tuple(made))
    after = await server.state()
    again = [await _answers(server, goal.seen_by if goal else ()) for goal in goals]
    seen = tuple(one != other for one, other in zip(shown, again, strict=True))
    return PlayedGoals(tuple(calls), state_changes(before, after), before, seen)


async def _answers(server: ServerForProof, calls: Sequence[GoalCall]) -> list[str]:
    return [(await server.call(call.tool, call.arguments)).text for call in calls]


async def prove_on_server(
    made: ServerDraft, server: ServerForProof, extensions: Extensions = NO_EXTENSIONS
) -> tuple[Draft, Proof]:
    """Execute the draft's plan on a fresh server.

    Returns the draft with what the user is to be told, and the proof. Raises UnprovedError, or
    TransientError for the server's own failure.
    """
    own = [*made.user_goals, *[None] * (len(made.draft.goals) - len(made.user_goals))]
    played = await play(
        server, own, [goal.steps if goal.possible else () for goal in made.draft.goals]
    )
    goals = [
        goal.model_copy(update={"asks": _asked(user_goal, calls)}) if user_goal else goal
        for goal, user_goal, calls in zip(made.draft.goals, own, played.calls, strict=True)
    ]
    calls = [call for part in played.calls for call in part]
    incidental = incidental_of(made.user_goals)
    changes = visible(played.changes, incidental)
    shown_by_calls = [bool(user_goal and user_goal.seen_by) for user_goal in own]
    for goal, by_calls, seen in zip(goals, shown_by_calls, played.seen, strict=True):
        if goal.writes and goal.possible and by_calls and not seen:
            raise UnprovedError("no_net_effect", goal.tool)
    in_state = any(
        goal.writes and goal.possible and not by_calls
        for goal, by_calls in zip(goals, shown_by_calls, strict=True)
    )
    if bool(changes) != in_state:
        raise UnprovedError("unexpected_effect" if changes else "no_net_effect")
    draft = made.draft.model_copy(update={"goals": tuple(goals)})
    _need_missing(draft, [server.config.description, *plain_values(played.before)])
    by_calls = any(shown_by_calls)
    read_from = "calls" if by_calls else read_from_of(server.config, changes)
    proved = draft.proved or {"plan": "executed", "nodes": 0, "depth": len(draft.plan)}
    proved |= {"state_read_from": read_from} | _forms(draft)
    draft = draft.model_copy(update={"proved": proved})
    rubric = rubric_of(
        draft,
        changes,
        made_ids=made_ids(unprobed(server.config, changes), calls),
        rules=(),
        forbidden=(),
        further=[*_calls(draft, own, calls), *extensions.criteria(draft)],
        incidental=incidental,
        by_calls=by_calls,
    )
    check_passes(rubric, draft, calls, extensions.kinds, changes=played.changes)
    check_derivable(
        draft,
        [_with_numbers(call) for call in calls],
        given=[server.config.description, *_free_choices(made.user_goals)],
    )
    return draft, Proof(
        rubric=rubric,
        observed_chars=observed_chars(calls),
        **shape_of(draft, [_with_numbers(call) for call in calls])._asdict(),
    )


def _forms(draft: Draft) -> dict[str, Any]:
    """The forms of the goals where they are not all plain, and what showed them."""
    if all(goal.form == "plain" for goal in draft.goals):
        return {}
    twins = [goal.twin for goal in draft.goals if goal.twin is not None]
    return {"forms": [goal.form for goal in draft.goals]} | ({"twins": twins} if twins else {})


def incidental_of(goals: Iterable[ServerGoal]) -> tuple[Incidental, ...]:
    """What comes out otherwise each time, of all goals together. No field: the whole entity."""
    fields: dict[str, set[str] | None] = {}
    rows: dict[str, set[str]] = {}
    for goal in goals:
        for entity, ids in goal.volatile_rows.items():
            rows.setdefault(entity, set()).update(ids)
        for entity, names in goal.volatile.items():
            known = fields.setdefault(entity, set())
            fields[entity] = None if known is None or not names else known | set(names)
    return tuple(
        Incidental(entity=entity, fields=tuple(sorted(names or ())))
        for entity, names in sorted(fields.items())
    ) + tuple(
        Incidental(entity=entity, fields=(), ids=tuple(sorted(ids)))
        for entity, ids in sorted(rows.items())
    )


def visible(
    changes: Iterable[StateChange], incidental: Sequence[Incidental]
) -> list[dict[str, Any]]:
    """The changes without incidental fields, and without those of which nothing is left."""
    found = []
    for change in changes:
        own = [one for one in incidental if one.is_of(change)]
        if not own:
            found.append(dict(change))
        elif all(one.fields for one in own):
            fields = {field for one in own for field in one.fields}
            sides = {
                side: change[side] and {f: v for f, v in change[side].items() if f not in fields}
                for side in ("before", "after")
            }
            if change["op"] != "update" or sides["after"]:
                found.append(dict(change) | sides)
    return found


def read_from_of(config: ServerConfig, changes: Sequence[StateChange]) -> str:
    """What showed the changes: `workspace` where any of them stands there."""
    has_other = unprobed(config, changes) or not config.probes
    return "workspace" if has_other else "probes"


def unprobed(config: ServerConfig, changes: Iterable[StateChange]) -> list[StateChange]:
    """The changes that no probe shows. The id of a line that a probe prints is the line."""
    return [change for change in changes if change["entity"] not in config.probes]


def made_ids(changes: Iterable[StateChange], calls: Sequence[EpisodeCall]) -> frozenset[str]:
    """Ids of new rows that no call named, so that the server made them up."""
    named = [str(value) for call in calls for value in plain_values(call.arguments)]
    return frozenset(
        change["id"]
        for change in changes
        if change["op"] == "create" and not any(_names(text, change["id"]) for text in named)
    )


def _names(text: str, key: str) -> bool:
    """Whether the text is the id, or a path that ends with it."""
    return text == key or text.endswith(f"/{key}")


def _with_numbers(call: EpisodeCall) -> EpisodeCall:
    """The answer of a server is a text; whoever reads it sees the numbers in it."""
    text = str(call.observation)
    return call.model_copy(update={"observation": [text, *numbers_in(text)]})


def numbers_in(text: str) -> list[int | float]:
    """Those that stand by themselves in the text."""
    found = [number for number in NUMBER.findall(text) if len(number) <= LONGEST_NUMBER]
    return [float(number) if "." in number else int(number) for number in found]


def _need_missing(draft: Draft, shown: Iterable[Any]) -> None:
    """What is left out on purpose stands nowhere in the state that the agent finds, as far as that
    is known."""
    if draft.variant != "missing_parameter":
        return
    texts = [text for text in shown if isinstance(text, str)]
    kept = [fact for goal in draft.goals for fact in goal.known if fact.when == "asked"]
    for fact in kept:
        if any(mentions(text, fact.value) for text in texts):
            raise UnprovedError("fact_can_be_found_out", f"{fact.label}: {fact.value!r}")


def _free_choices(user_goals: Sequence[ServerGoal]) -> list[Any]:
    """What the agent chooses or composes itself: how many lines to show, a query, and the like."""
    return [
        value
        for user_goal in user_goals
        for at, call in enumerate(user_goal.calls)
        for param, argument in call.arguments.items()
        if label_of(user_goal, at, param) is None
        for value in plain_values(argument)
        if not isinstance(value, str) or f"{at}.{param}" in user_goal.composed
    ]


def _asked(user_goal: ServerGoal, calls: Sequence[EpisodeCall]) -> tuple[Asked, ...]:
    return tuple(
        Asked(label=place.label, values=(_value(place, calls),)) for place in user_goal.communicate
    )


def _value(place: Communicated, calls: Sequence[EpisodeCall]) -> str | float:
    value = place.value_in(str(calls[place.call].observation))
    if value is None:
        raise UnprovedError("answer_not_found", place.label)
    return value


def _calls(
    draft: Draft, user_goals: Sequence[ServerGoal | None], calls: Sequence[EpisodeCall]
) -> list[Criterion]:
    """For goals whose effect the state does not show: the calls that bring it about, with what the
    user said and what earlier answers showed."""
    criteria: list[Criterion] = []
    shown: list[str] = []
    at = 0
    for goal, user_goal in zip(draft.goals, user_goals, strict=True):
        for step in goal.steps if goal.possible else ():
            last = step is goal.steps[-1]
            if user_goal and user_goal.seen_by and last:
                needed = _needed(goal, step.arguments, shown)
                criteria.append(
                    CALL.criterion(
                        f"called_{len(criteria) + 1}",
                        f"The assistant does this with what the user said: {goal.sentence}",
                        CallCheck(tool=step.tool, must="occur", arguments=needed or None),
                        weight=4,
                        mandatory=True,
                    )
                )
            shown.append(str(calls[at].observation))
            at += 1
    return criteria


def _needed(goal: Goal, arguments: dict[str, Any], shown: Sequence[str]) -> dict[str, Any]:
    """The arguments that are no free choice."""
    sources = [*(fact.value for fact in goal.known), *shown]
    return {
        name: value
        for name, value in arguments.items()
        if all(any(shows(source, part) for source in sources) for part in plain_values(value))
    }
