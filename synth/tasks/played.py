"""Tasks for tools that a model plays: calls drawn from their schemas and the rows of their
environment, proved by having the simulator answer them once.

What the user wants to be told is what the environment's rows hold, and what has to change is what
the calls say: values that the simulator made up may come out otherwise in an episode, so they are
incidental to the goal.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

from records.seeds import rng_of
from records.tables.schemas import Row
from synth.episode.tools.simulator import Answers, Question, text_of
from synth.rubrics.built_in import CALL, STATE, EpisodeCall, net_changes
from synth.rubrics.criteria import CallCheck, Criterion, Incidental, Rubric, StateCheck
from synth.rubrics.episode import is_read_only
from synth.tasks.goals.goals import Asked, Draft, Fact, Goal, Proof, Step
from synth.tasks.goals.knowledge import plain_values, words_of
from synth.tasks.goals.rubrics import expected_changes, rubric_of
from synth.tasks.lengths import Complexity, complexity_of
from synth.tasks.proof.chains import shape_of
from synth.tasks.proof.extensions import NO_EXTENSIONS, Extensions
from synth.tasks.proof.proving import UnprovedError, check_derivable, check_passes, observed_chars
from synth.tasks.servers.drafting import param_words, plain_parts
from tool_specs.domains.domain import Domain
from tool_specs.domains.interpreter import DomainEnvironment
from tool_specs.language.schemas import SchemaError, Validator
from tool_specs.toolsets.nouns import IDENTITY, asked_by, subject_of

ATTEMPTS = 5
"""Calls that the simulator is asked for one user goal before the task is dropped."""

MAX_GOALS = 2

MAX_TOLD = 2

OPTIONAL = 0.3
"""How often a parameter that need not be given is."""

_CALLING = frozenset(
    {"limit", "offset", "page", "per_page", "cursor", "sort", "order", "fields", "page_size"}
)
"""Parameters that nobody wishes for."""

_NO = object()


class DrawnPlayedCall(NamedTuple):
    tool: Row
    arguments: dict[str, Any]


async def make_played(
    item_id: str,
    domain: Domain,
    tools: Sequence[Row],
    answers: Answers,
    *,
    shares: Complexity,
    extensions: Extensions = NO_EXTENSIONS,
) -> tuple[str, Draft, Proof]:
    """(declared complexity, draft, proof) for an agent with these tools of the environment.

    UnprovedError when no call works out, TransientError when the simulator cannot be asked.
    """
    complexity, count = complexity_of(shares, rng_of(item_id, "task"))
    rng = rng_of(item_id, "draft")
    environment = DomainEnvironment.of(domain)
    goals: list[Goal] = []
    calls: list[EpisodeCall] = []
    asked = 0
    for _ in range(min(count, MAX_GOALS)):
        for _ in range(ATTEMPTS):
            drawn = _draw(environment, tools, rng, without={goal.tool for goal in goals})
            if drawn is None:
                continue
            read_only = is_read_only(drawn.tool)
            question = Question(drawn.tool, drawn.arguments, read_only, environment, (), asked)
            asked += 1
            played = await answers.answer(question)
            if played is None or played.is_error:
                continue
            asks = _asks(environment, drawn.arguments, played.observation, rng)
            if not played.diff and not asks:
                continue
            goals.append(_goal(drawn, asks, writes=bool(played.diff)))
            text = text_of(played.observation)
            step = goals[-1].steps[0]
            calls.append(
                EpisodeCall(
                    tool=step.tool,
                    arguments=step.arguments,
                    observation=text,
                    diff=tuple(played.diff),
                )
            )
            environment = played.after
            break
        else:
            break
    if not goals:
        raise UnprovedError("no_goal_found", domain.name)
    proved = {"plan": "simulated", "nodes": asked, "depth": len(calls)}
    draft = Draft(variant="normal", goals=tuple(goals), initial_state={}, proved=proved)
    rubric = _rubric(domain, draft, calls, extensions)
    check_passes(rubric, draft, calls, extensions.kinds)
    check_derivable(draft, calls)
    shape = shape_of(draft, calls)._asdict()
    return complexity, draft, Proof(rubric=rubric, observed_chars=observed_chars(calls), **shape)


def _draw(
    environment: DomainEnvironment, tools: Sequence[Row], rng: Random, *, without: set[str]
) -> DrawnPlayedCall | None:
    """A tool, and arguments that its schema takes; None where this draw came to nothing."""
    usable = [tool for tool in tools if tool["name"] not in without]
    if not usable:
        return None
    tool = rng.choice(usable)
    schema = tool["input_schema"]
    required = schema.get("required", ())
    arguments: dict[str, Any] = {}
    for param, member in schema.get("properties", {}).items():
        if param not in required and (param in _CALLING or rng.random() >= OPTIONAL):
            continue
        value = _value(environment, tool["name"], param, member, rng, 0)
        if value is not _NO:
            arguments[param] = value
    try:
        fits = Validator(schema).is_valid(arguments)
    except SchemaError:
        return None
    return DrawnPlayedCall(tool, arguments) if fits else None


def _value(
    environment: DomainEnvironment, tool: str, param: str, schema: Any, rng: Random, depth: int
) -> Any:
    schema = schema if isinstance(schema, Mapping) else {}
    kind = schema.get("type", "string")
    kind = next((k for k in kind if k != "null"), "string") if isinstance(kind, list) else kind
    choices = [value for value in schema.get("enum", ()) if value is not None]
    if choices:
        return rng.choice(choices)
    match kind:
        case "boolean":
            return rng.random() < 0.5
        case "integer" | "number":
            least = schema.get("minimum", 1)
            return rng.randint(int(least), int(min(schema.get("maximum", least + 40), least + 40)))
        case "array" if depth < 2:
            item = _value(environment, tool, param, schema.get("items"), rng, depth + 1)
            return _NO if item is _NO else [item]
        case "object" if depth < 2:
            members = schema.get("properties", {})
            made = {
                name: _value(environment, tool, name, members.get(name), rng, depth + 1)
                for name in schema.get("required", ())
            }
            return _NO if any(part is _NO for part in made.values()) else made
        case "string":
            return _text(environment, tool, param, schema, rng)
    return _NO


def _text(
    environment: DomainEnvironment, tool: str, param: str, schema: Mapping[str, Any], rng: Random
) -> str:
    """An id where the parameter asks for one, else what a field of this name holds, else a text
    of the environment's."""
    form = schema.get("format")
    if form in ("date", "date-time"):
        return environment.domain.now[:10] if form == "date" else f"{environment.domain.now}Z"
    subject = subject_of(tool, "").noun
    asked = asked_by(param, subject)
    for name, entity in environment.domain.entities.items():
        is_named = asked.is_id and asked.noun.replace(" ", "_") == name
        if is_named or param == entity.key:
            return str(rng.choice(environment.rows(name))[entity.key])
    values = [
        row[param]
        for name, entity in environment.domain.entities.items()
        for row in environment.rows(name)
        if param in entity.fields and isinstance(row[param], str) and row[param]
    ]
    if values:
        return rng.choice(values)
    return str(rng.choice(_texts(environment)))


def _texts(environment: DomainEnvironment) -> list[str]:
    """What the rows say in words, ids and the like apart."""
    found = [
        row[field]
        for name, entity in environment.domain.entities.items()
        for row in environment.rows(name)
        for field, spec in entity.fields.items()
        if spec.type == "string" and field != entity.key and row[field]
    ]
    return sorted(set(found)) or ["a note"]


def _goal(drawn: DrawnPlayedCall, asks: tuple[Asked, ...], *, writes: bool) -> Goal:
    tool, arguments = drawn
    required = tool["input_schema"].get("required", ())
    labels = {param: _label(tool, param) for param in arguments}
    known: list[Fact] = []
    for param, value in arguments.items():
        for label, plain in plain_parts(labels[param], value):
            fact = Fact(label=label, value=plain, param=param, needed=param in required)
            if fact not in known:
                known.append(fact)
    return Goal(
        tool=tool["name"],
        description=_first_sentence(tool),
        arguments=arguments,
        labels=labels,
        known=tuple(known),
        asks=asks,
        steps=(Step(tool=tool["name"], arguments=arguments),),
        writes=writes,
    )


def _label(tool: Row, param: str) -> str:
    """A bare `id` is the id of what the tool is about."""
    words = param_words(param)
    subject = subject_of(tool["name"], "").noun
    return f"{subject} {words}" if words in IDENTITY and subject else words


def _first_sentence(tool: Row) -> str:
    """Descriptions of imported tools run on and carry markup; people wish in a sentence."""
    plain = re.sub(r"[*_`#>|]+", " ", tool["description"])
    first = re.split(r"(?<=[.!?])\s|\n|:\s", plain.strip())[0].strip()
    words = " ".join(first.split())[:160].rstrip(".")
    return f"{words or param_words(tool['name'])}."


def _asks(
    environment: DomainEnvironment, arguments: dict[str, Any], observation: Any, rng: Random
) -> tuple[Asked, ...]:
    """Values of the answer that stand in rows of the environment as it was, and not in the call."""
    known = {
        value
        for name in environment.domain.entities
        for row in environment.rows(name)
        for value in plain_values(row)
        if isinstance(value, str | int | float) and not isinstance(value, bool)
    }
    said = set(map(str, plain_values(arguments)))
    found: dict[str, Any] = {}
    for label, value in _labelled(observation):
        if value in known and str(value) not in said and label:
            found.setdefault(label, value)
    labels = sorted(found)
    chosen = rng.sample(labels, min(len(labels), MAX_TOLD))
    return tuple(Asked(label=label, values=(found[label],)) for label in chosen)


def _labelled(value: Any, label: str = "") -> Iterator[tuple[str, Any]]:
    """(what it is called, value) of plain values; of a list only where it has one element, since a
    user who asks for a value means one."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _labelled(part, words_of(str(name)))
    elif isinstance(value, list):
        if len(value) == 1:
            yield from _labelled(value[0], label)
    elif isinstance(value, int | float | str) and not isinstance(value, bool):
        is_short = not isinstance(value, str) or 0 < len(value) <= 80
        # a small figure is said by chance in any conversation
        if is_short and not (isinstance(value, int | float) and abs(value) < 10):
            yield label, value


def _rubric(
    domain: Domain, draft: Draft, calls: Sequence[EpisodeCall], extensions: Extensions
) -> Rubric:
    changes = net_changes(change for call in calls for change in call.diff)
    said = {str(fact.value) for goal in draft.goals for fact in goal.known}
    made = frozenset(
        c["id"]
        for c in changes
        if c["op"] == "create" and domain.entities[c["entity"]].prefix is not None
    )
    free: dict[str, set[str]] = {}
    for change in changes:
        for field, value in (change["after"] or {}).items():
            if change["op"] == "create" and value == change["id"]:
                continue
            if not all(str(part) in said for part in plain_values(value)) or value in ([], {}):
                free.setdefault(change["entity"], set()).add(field)
    shown = [_without(change, free.get(change["entity"], set())) for change in changes]
    wanted = [change for change in shown if change["op"] != "update" or change["after"]]
    rubric = rubric_of(
        draft,
        changes,
        made_ids=made,
        rules=(),
        forbidden=(),
        further=[*_calls(draft), *extensions.criteria(draft)],
    )
    check = StateCheck(
        changes=expected_changes(wanted, made),
        incidental=tuple(
            Incidental(entity=entity, fields=tuple(sorted(fields)))
            for entity, fields in sorted(free.items())
        ),
    )
    state = rubric.criteria[0]
    state = STATE.criterion("state", state.words, check, weight=4, mandatory=True)
    return Rubric(pass_threshold=rubric.pass_threshold, criteria=(state, *rubric.criteria[1:]))


def _without(change: Mapping[str, Any], fields: set[str]) -> dict[str, Any]:
    after = change["after"]
    if change["op"] == "delete" or after is None:
        return dict(change)
    return {**change, "after": {f: v for f, v in after.items() if f not in fields}}


def _calls(draft: Draft) -> list[Criterion]:
    """The calls that grant the user goals: where a model makes up the answers, what was asked of it
    is the firmest thing to hold on to."""
    return [
        CALL.criterion(
            f"called_{number}",
            f"The assistant does this with what the user said: {goal.sentence}",
            CallCheck(tool=goal.tool, must="occur", arguments=_given(goal)),
            weight=2,
            mandatory=True,
        )
        for number, goal in enumerate(draft.goals, 1)
    ]


def _given(goal: Goal) -> dict[str, Any] | None:
    needed = {fact.param for fact in goal.known if fact.needed}
    return {param: v for param, v in goal.arguments.items() if param in needed} or None
