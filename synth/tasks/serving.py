"""Tasks for real MCP servers: goals from the server's definition, proved by executing them.

Each reference plan runs in a fresh sandboxed server; its probes tell what changed, its answers
tell what the user is to hear. Nothing is assumed of the server but what it did.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

from records.seeds import rng_of
from records.tables.schemas import Row
from sandboxes.mcp.servers import Communicated, ServerConfig, ServerGoal, fill
from synth.episode.tools.cassette import ServerForProof
from synth.rubrics.built_in import EpisodeCall, mentions, state_changes
from synth.tasks.goals.goals import Asked, Draft, Fact, Goal, Proof, Step
from synth.tasks.goals.knowledge import plain_values, words_of
from synth.tasks.goals.rubrics import rubric_of
from synth.tasks.goals.variants import ServerVariantShares
from synth.tasks.lengths import Complexity, complexity_of
from synth.tasks.proof.chains import shape_of
from synth.tasks.proof.disclosure import disclosed
from synth.tasks.proof.extensions import NO_EXTENSIONS, Extensions
from synth.tasks.proof.proving import (
    UnprovedError,
    check_derivable,
    check_passes,
    observed_chars,
)
from synth.tasks.proof.unsolvable import Others, irrelevant_goal


class ServerDraft(NamedTuple):
    complexity: str
    draft: Draft
    """Without what only the execution shows: what the user is to be told."""

    told: tuple[tuple[Communicated, ...], ...]
    """For each goal, where in its answer the values stand that the user is to be told."""

    user_goals: tuple[ServerGoal, ...]
    """The definitions behind the goals, one or several goals each."""


def draft_for_server(
    config: ServerConfig,
    tools: Mapping[str, Row],
    item_id: str,
    *,
    shares: Complexity,
    disclosure: str,
    variants: ServerVariantShares = ServerVariantShares(),
    attempt: int = 0,
    others: Others | None = None,
) -> ServerDraft:
    """A draft for an agent with these tools of the server, rows by name. UnprovedError without
    any goal.

    Another `attempt` is another choice of user goals for the same item; `others` are the domains
    that a user goal may belong to which no tool of the server grants.
    """
    rng = rng_of(item_id, "task")
    complexity, count = complexity_of(shares, rng)
    variant = variants.variant(rng)
    rng = rng_of(item_id, "draft", attempt)
    user_goals = _choose(config, tools, count, rng)
    slots = {name: rng.choice(values) for name, values in config.slots.items()}
    places = [(user_goal, at) for user_goal in user_goals for at in range(len(user_goal.calls))]
    draft = Draft(
        variant=variant,
        goals=tuple(_goal(user_goal, at, slots, tools) for user_goal, at in places),
        initial_state={"fixture": rng.choice(sorted(config.fixtures))},
    )
    told = tuple(
        tuple(c for c in user_goal.communicate if c.call == at) for user_goal, at in places
    )
    if variant == "irrelevant_tool":
        words = {word for name in tools for word in param_words(name).split()}
        found = others and irrelevant_goal(others(), words, tools, rng)
        if not found:
            draft = draft.model_copy(update={"variant": "normal"})
        else:
            goals, proved = (*draft.goals, found.goal), {"out_of_reach": found.obstacle._asdict()}
            draft = draft.model_copy(update={"goals": goals, "proved": proved})
            told = (*told, ())
    keep_back = rng_of(item_id, "reveals")
    try:
        draft = disclosed(draft, disclosure, keep_back)
    except UnprovedError:  # nothing in it that could be kept back
        draft = disclosed(draft.model_copy(update={"variant": "normal"}), disclosure, keep_back)
    return ServerDraft(complexity, draft, told, tuple(user_goals))


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


def _goal(
    user_goal: ServerGoal, at: int, slots: Mapping[str, str | int], tools: Mapping[str, Row]
) -> Goal:
    """One call of a user goal. Of several calls each is a goal by itself, one after the
    other."""
    call = user_goal.calls[at]
    step = Step(tool=call.tool, arguments=fill(call.arguments, slots))
    tool = tools[call.tool]
    required = tool["input_schema"].get("required", ())
    known: list[Fact] = []
    for param, value in step.arguments.items():
        if param not in user_goal.labels:
            continue
        for label, plain in plain_parts(_known_as(param, user_goal.labels[param]), value):
            fact = Fact(label=label, value=plain, param=param, needed=param in required)
            if fact not in known:
                known.append(fact)
    alone = len(user_goal.calls) == 1
    return Goal(
        tool=call.tool,
        description=tool["description"],
        wish=_sentence(fill(user_goal.wish, slots)) if alone else "",
        arguments=step.arguments,
        labels={
            param: label for param, label in user_goal.labels.items() if param in call.arguments
        },
        known=tuple(known),
        steps=(step,),
        writes=user_goal.writes,
    )


def _known_as(param: str, label: str) -> str:
    """The label, with the parameter's own words where it has none of them: an agent that asks for
    the revision is to be understood by a person who knows a tag."""
    words = param_words(param)
    is_akin = words.replace(" ", "") in label.replace(" ", "")
    return label if is_akin or set(words.split()) & set(label.split()) else f"{label} ({words})"


def param_words(name: str) -> str:
    """`oldText` and `old_text` are "old text"."""
    return words_of(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())


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
    return f"{words[:1].upper()}{words[1:]}."


async def prove_on_server(
    made: ServerDraft, server: ServerForProof, extensions: Extensions = NO_EXTENSIONS
) -> tuple[Draft, Proof]:
    """Execute the draft's plan on a fresh server.

    Returns the draft with what the user is to be told, and the proof. Raises UnprovedError, or
    TransientError for the server's own failure.
    """
    before = await server.state()
    calls: list[EpisodeCall] = []
    goals: list[Goal] = []
    for goal, told in zip(made.draft.goals, made.told, strict=True):
        if not goal.possible:
            goals.append(goal)
            continue
        (step,) = goal.steps
        result = await server.call(step.tool, step.arguments)
        if result.is_error:
            raise UnprovedError("plan_fails", f"{step.tool}: {result.text[:200]}")
        calls.append(EpisodeCall(tool=step.tool, arguments=step.arguments, observation=result.text))
        goals.append(goal.model_copy(update={"asks": _asked(told, result.text)}))
    changes = state_changes(before, await server.state())
    if bool(changes) != any(goal.writes and goal.possible for goal in goals):
        raise UnprovedError("unexpected_effect" if changes else "no_net_effect")
    draft = made.draft.model_copy(update={"goals": tuple(goals)})
    _need_missing(
        draft, [server.config.description, *(line for p in before.values() for line in p)]
    )
    rubric = rubric_of(
        draft,
        changes,
        made_ids=frozenset(),
        rules=(),
        forbidden=(),
        further=extensions.criteria(draft),
    )
    check_passes(rubric, draft, calls, extensions.kinds, changes=changes)
    check_derivable(
        draft, calls, given=[server.config.description, *_free_choices(made.user_goals)]
    )
    return draft, Proof(
        rubric=rubric,
        observed_chars=observed_chars(calls),
        **shape_of(draft, calls)._asdict(),
    )


def _need_missing(draft: Draft, shown: Sequence[str]) -> None:
    """What is left out on purpose stands nowhere in the state that the agent finds, as far as the
    probes show it."""
    if draft.variant != "missing_parameter":
        return
    kept = [fact for goal in draft.goals for fact in goal.known if fact.when == "asked"]
    for fact in kept:
        if any(mentions(text, fact.value) for text in shown):
            raise UnprovedError("fact_can_be_found_out", f"{fact.label}: {fact.value!r}")


def _free_choices(user_goals: Sequence[ServerGoal]) -> list[Any]:
    """Figures and flags of a plan that no user says: how many lines to show, and the like."""
    return [
        value
        for user_goal in user_goals
        for call in user_goal.calls
        for param, argument in call.arguments.items()
        if param not in user_goal.labels
        for value in plain_values(argument)
        if not isinstance(value, str)
    ]


def _asked(told: Sequence[Communicated], answer: str) -> tuple[Asked, ...]:
    asked: list[Asked] = []
    for place in told:
        value = place.value_in(answer)
        if value is None:
            raise UnprovedError("answer_not_found", place.label)
        asked.append(Asked(label=place.label, values=(value,)))
    return tuple(asked)
