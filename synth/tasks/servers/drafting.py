"""Drafts of tasks for real MCP servers, from the goals of the server's definition and from those
that were found by trying."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple, cast

from records.seeds import rng_of
from records.tables.schemas import Row
from sandboxes.mcp.servers import ServerConfig, ServerGoal, fill
from synth.rubrics.built_in import mentions
from synth.tasks.goals.goals import Draft, Fact, Goal, GoalForm, Step
from synth.tasks.goals.knowledge import words_of
from synth.tasks.goals.variants import ServerVariantShares
from synth.tasks.proof.disclosure import disclosed
from synth.tasks.proof.proving import UnprovedError
from synth.tasks.proof.unsolvable import Others, irrelevant_goal
from synth.tasks.words.together import with_goals_together


class ServerDraft(NamedTuple):
    draft: Draft
    """Without what only the execution shows: what the user is to be told."""

    user_goals: tuple[ServerGoal, ...]
    """The definitions behind the goals, in their order; a goal of another domain has none."""


def draft_for_server(
    config: ServerConfig,
    tools: Mapping[str, Row],
    item_id: str,
    *,
    count: int,
    disclosure: str,
    variants: ServerVariantShares = ServerVariantShares(),
    together: float = 0.0,
    attempt: int = 0,
    others: Others | None = None,
) -> ServerDraft:
    """A draft for an agent with these tools of the server, rows by name. UnprovedError without
    any goal.

    `count`: about how many calls the plan is to have. `together`: share of the tasks of several
    goals whose first message brings more than one.
    Another `attempt` is another choice of user goals for the same item; `others` are the domains
    that a user goal may belong to which no tool of the server grants.
    """
    variant = variants.variant(rng_of(item_id, "variant"))
    rng = rng_of(item_id, "draft", attempt)
    user_goals = _choose(config, tools, count, rng)
    slots = {name: rng.choice(values) for name, values in config.slots.items()}
    draft = Draft(
        variant=variant,
        goals=tuple(goal_of(user_goal, slots, tools) for user_goal in user_goals),
        initial_state=_start(config, rng),
    )
    if variant == "irrelevant_tool":
        words = {word for name in tools for word in param_words(name).split()}
        found = others and irrelevant_goal(others(), words, tools, rng)
        if not found:
            draft = draft.model_copy(update={"variant": "normal"})
        else:
            goals, proved = (*draft.goals, found.goal), {"out_of_reach": found.obstacle._asdict()}
            draft = draft.model_copy(update={"goals": goals, "proved": proved})
    keep_back = rng_of(item_id, "reveals")
    try:
        draft = disclosed(draft, disclosure, keep_back)
    except UnprovedError:  # nothing in it that could be kept back
        draft = disclosed(draft.model_copy(update={"variant": "normal"}), disclosure, keep_back)
    if draft.variant == "normal":
        draft = with_goals_together(draft, together, rng_of(item_id, "together", attempt))
    return ServerDraft(draft, tuple(user_goals))


def _start(config: ServerConfig, rng: Random) -> dict[str, Any]:
    """What the server begins with: one of its fixtures, or what a run has filled it with."""
    if config.start:
        return {"fixture": "default", "start": config.start}
    return {"fixture": rng.choice(sorted(config.fixtures))}


def _choose(
    config: ServerConfig, names: Collection[str], count: int, rng: Random
) -> list[ServerGoal]:
    """User goals that go together, with about `count` calls, those that one requires before it."""
    by_id = {user_goal.id: user_goal for user_goal in config.goals}
    usable = [w for w in config.goals if all(call.tool in names for call in w.calls)]
    usable = [w for w in usable if all(by_id[r] in usable for r in w.requires)]
    chosen: list[ServerGoal] = []
    for user_goal in rng.sample(usable, len(usable)):
        new = [w for w in (*(by_id[r] for r in user_goal.requires), user_goal) if w not in chosen]
        if chosen and _num_calls([*chosen, *new]) > count:
            continue
        if not any(_in_conflict(a, b) for a in new for b in chosen):
            chosen += new
        if _num_calls(chosen) >= count:
            break
    if not chosen:
        raise UnprovedError("no_goal_found", f"server {config.name}")
    return chosen


def _num_calls(user_goals: Sequence[ServerGoal]) -> int:
    return sum(len(user_goal.calls) for user_goal in user_goals)


def _in_conflict(a: ServerGoal, b: ServerGoal) -> bool:
    return a.id in b.conflicts or b.id in a.conflicts


def goal_of(
    user_goal: ServerGoal, slots: Mapping[str, str | int], tools: Mapping[str, Row]
) -> Goal:
    """The goal with all its calls; the last one is the one that it is granted by."""
    steps = tuple(Step(tool=c.tool, arguments=fill(c.arguments, slots)) for c in user_goal.calls)
    last = len(steps) - 1
    wish = fill(user_goal.wish, slots)
    known: dict[tuple[str, Any], Fact] = {}
    """A value that several calls take under one name is one, as the last of them takes it."""
    for at, step in enumerate(steps):
        required = tools[step.tool]["input_schema"].get("required", ())
        for param, value in step.arguments.items():
            if (name := label_of(user_goal, at, param)) is None:
                continue
            # nobody asks for what a search before it takes
            called = _known_as(param, name) if at == last else name
            for label, plain in _said_parts(called, value, wish):
                fact = Fact(label=label, value=plain, param=param, needed=param in required)
                known.pop(key := (label.replace(called, name, 1), plain), None)
                known[key] = fact
    labels = {param: label_of(user_goal, last, param) for param in steps[last].arguments}
    return Goal(
        tool=steps[last].tool,
        description=tools[steps[last].tool]["description"],
        wish=_sentence(wish),
        form=cast(GoalForm, user_goal.form),
        twin=user_goal.twin and user_goal.twin.model_dump(mode="json"),
        arguments=steps[last].arguments,
        labels={param: label for param, label in labels.items() if label is not None},
        known=tuple(known.values()),
        steps=steps,
        writes=user_goal.writes,
    )


def label_of(user_goal: ServerGoal, call: int, param: str) -> str | None:
    """What people call the parameter of the goal's call; None where they know nothing of it."""
    return user_goal.labels.get(f"{call}.{param}", user_goal.labels.get(param))


def _known_as(param: str, label: str) -> str:
    """The label, with the parameter's own words where it has none of them: an agent that asks for
    the revision is to be understood by a person who knows a tag."""
    words = param_words(param)
    is_akin = words.replace(" ", "") in label.replace(" ", "")
    return label if is_akin or set(words.split()) & set(label.split()) else f"{label} ({words})"


def param_words(name: str) -> str:
    """`oldText` and `old_text` are "old text"."""
    return words_of(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())


def _said_parts(label: str, value: Any, wish: str) -> list[tuple[str, Any]]:
    """The plain values in an argument that the user knows: of an object or a list those that the
    sentence says, where it says any, since the rest is looked up."""
    parts = list(plain_parts(label, value))
    if not isinstance(value, dict | list):
        return parts
    return [part for part in parts if mentions(wish, part[1])] or parts


def plain_parts(label: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The plain values in an argument, those in objects with the member's name."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from plain_parts(f"{label}, {param_words(name)}", part)
    elif isinstance(value, list):
        for part in value:
            yield from plain_parts(label, part)
    elif value is not None:
        yield label, value


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:].rstrip('.')}."
