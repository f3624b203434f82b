"""User goals that do not fit the agent's tools as they are said: of another domain, or of two
minds.

An irrelevant user goal is a real one, of another domain: its row, its words, a tool that would
grant it there. An unclear one names a row and not what should be done with it, which two or more of
the agent's tools would do in different ways; what is meant, the user tells when asked.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

from synth.tasks.goals.arguments import Drawer
from synth.tasks.goals.building import Builder
from synth.tasks.goals.domain_tools import DomainTool, tools_of
from synth.tasks.goals.goals import Fact, Goal
from synth.tasks.goals.knowledge import words_of
from synth.tasks.proof.reach import Obstacle
from tool_specs.domains.domain import Domain
from tool_specs.domains.interpreter import DomainEnvironment, policy_violations

Others = Callable[[], Sequence[Domain]]
"""Domains of which an agent has no tool, made when they are needed."""

OTHER_DOMAINS = 4
"""Other domains that are looked at for one user goal."""

ACTION = "action wanted"
"""What an unclear user goal leaves open, as the user's list of facts calls it."""

FITTING_TRIES = 8
"""Draws of another tool's call on the same row."""

MAX_ACTION = 120
"""Characters of the words for it."""


class Irrelevant(NamedTuple):
    goal: Goal
    obstacle: Obstacle


def irrelevant_goal(
    others: Sequence[Domain], domain_words: Collection[str], names: Collection[str], rng: Random
) -> Irrelevant | None:
    """A user goal of one of the other domains, to which no tool of the agent belongs; None where
    all are too near.

    `domain_words` are the nouns of the agent's own domain, `names` those of its tools.
    """
    for other in rng.sample(others, min(OTHER_DOMAINS, len(others))):
        tools = tools_of(other)
        far = [
            tool
            for name, tool in sorted(tools.items())
            if tool.writes and name not in names and not nouns_of([tool]) & set(domain_words)
        ]
        for tool in rng.sample(far, min(OTHER_DOMAINS, len(far))):
            builder = Builder(other, DomainEnvironment.of(other), tools, rng=rng)
            if builder.add(tool, possible=False):
                (change, *_) = builder.changes_if_granted(builder.goals[0])
                words = f"{change['op']} {change['entity']} of {other.name}"
                goal = builder.goals[0].model_copy(update={"steps": ()})
                return Irrelevant(goal, Obstacle(words, "other_world"))
    return None


def nouns_of(tools: Collection[DomainTool]) -> set[str]:
    """Words of the entities that the tools name or change."""
    entities = {write.entity for tool in tools for write in tool.writes}
    entities |= {param.ref for tool in tools for param in tool.spec.params.values() if param.ref}
    return {word for entity in entities for word in entity.split("_")}


def alternatives(tool: DomainTool, tools: Mapping[str, DomainTool]) -> list[tuple[DomainTool, str]]:
    """Other tools that change the kind of row that this one changes, each with the parameter that
    names it."""
    row = _row_of(tool)
    if row is None:
        return []
    others = ((other, _row_of(other)) for name, other in sorted(tools.items()) if name != tool.name)
    return [(other, own[0]) for other, own in others if own is not None and own[1] == row[1]]


def _row_of(tool: DomainTool) -> tuple[str, str] | None:
    """(parameter, entity) of the row that every call must name and that it changes."""
    params = tool.spec.params
    for key in (write.key for write in tool.writes if write.key in params):
        if key is not None and not params[key].optional and (entity := params[key].ref):
            return key, entity
    return None


def unclear(
    goal: Goal,
    tool: DomainTool,
    tools: Mapping[str, DomainTool],
    environment: DomainEnvironment,
    drawer: Drawer,
) -> Goal | None:
    """The goal as one who is not clear would put it: which row, and neither what should be done
    with it nor the particulars. None where its words fit nothing else.

    Every other reading can be granted, breaks no rule, and comes to something else. `environment`
    is the state in which the goal is wanted.
    """
    row = _row_of(tool)
    required = {name for name, param in tool.spec.params.items() if not param.optional}
    if row is None or not goal.arguments.keys() <= required:
        return None
    key = goal.arguments[row[0]]
    meant = environment.snapshot().call(tool.name, goal.arguments)
    fitting = [
        other.name
        for other, param in alternatives(tool, tools)
        if _fits(other, {param: key}, meant.diff, environment, drawer)
    ]
    if not fitting:
        return None
    kept = [fact if fact.param == row[0] else _asked(fact) for fact in goal.known]
    action = Fact(label=ACTION, value=action_of(tool), param="", needed=True, when="asked")
    return goal.model_copy(
        update={
            "description": f"Deal with the {words_of(row[1])}.",
            "known": (*kept, action),
            "asks": (),
            "could_be": tuple(fitting),
        }
    )


def _fits(
    tool: DomainTool,
    named: dict[str, Any],
    meant: Sequence[Mapping[str, Any]],
    environment: DomainEnvironment,
    drawer: Drawer,
) -> bool:
    for _ in range(FITTING_TRIES):
        arguments = drawer.draw(environment, tool) | named
        result = environment.snapshot().call(tool.name, arguments)
        if result.is_error or not result.diff or result.diff == meant:
            continue
        if not policy_violations(environment, tool.name, arguments):
            return True
    return False


def _asked(fact: Fact) -> Fact:
    return fact.model_copy(update={"when": "asked"})


def action_of(tool: DomainTool) -> str:
    """What the tool does, as an order: the first sentence of its description."""
    sentence = tool.spec.description.split(". ")[0].strip().rstrip(".")
    short = sentence if len(sentence) <= MAX_ACTION else sentence.split(",")[0][:MAX_ACTION]
    return f"{short[:1].lower()}{short[1:]}"
