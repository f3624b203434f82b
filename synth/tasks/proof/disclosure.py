"""Who tells what when: facts told at once, kept back until the agent asks, or left out on purpose.

What is left out of a task with a missing parameter must be missing indeed. The proof is a twin: the
same state and the same words with another value of that one fact, which would be granted too and
would come to something else. Whatever the agent reads, both look alike, so no plan serves both.
"""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import islice
from random import Random
from typing import Any

from synth.tasks.goals.goals import Draft, Fact, Goal
from synth.tasks.goals.knowledge import leaves
from synth.tasks.proof.proving import UnprovedError
from tool_specs.domains.domain import Domain
from tool_specs.domains.interpreter import DomainEnvironment, policy_violations
from tool_specs.language.domain_file import ParamSpec

MAX_TWINS = 40
"""Other values that are tried for one fact."""

KEPT_BACK = {"at_once": 0.0, "mixed": 0.3, "when_asked": 0.6}
"""Share of the facts of a user goal that a persona tells only when asked."""


IsMissing = Callable[[Goal, Fact], bool]
"""Whether a fact of the goal, untold, can be had from nobody but the user."""


def disclosed(
    draft: Draft, disclosure: str, rng: Random, is_missing: IsMissing = lambda goal, fact: True
) -> Draft:
    """The draft with each fact told at once or kept back.

    `missing_parameter` keeps back exactly one fact, and one without which nothing can be done.
    """
    if draft.variant == "missing_parameter":
        return _one_kept_back(draft, rng, is_missing)
    if draft.variant in ("no_tool", "unclear_tool"):
        return draft
    return kept_back(draft, KEPT_BACK[disclosure], rng)


def kept_back(draft: Draft, share: float, rng: Random) -> Draft:
    """The draft with `share` of the facts that the agent will ask for told only then; the first of
    each goal is told at once."""
    can_wait = _can_wait(draft)
    goals = [
        goal.model_copy(
            update={
                "known": tuple(
                    _kept(fact) if n > 0 and fact in can_wait and rng.random() < share else fact
                    for n, fact in enumerate(goal.known)
                )
            }
        )
        for goal in draft.goals
    ]
    return draft.model_copy(update={"goals": tuple(goals)})


def _can_wait(draft: Draft) -> list[Fact]:
    """Facts that the agent will ask for, and whose label tells the user which one is meant."""
    facts = [fact for goal in draft.goals for fact in goal.known]
    return [
        fact
        for fact in facts
        if fact.needed and all(f.value == fact.value for f in facts if f.label == fact.label)
    ]


def _kept(fact: Fact) -> Fact:
    return fact.model_copy(update={"when": "asked"})


def _one_kept_back(draft: Draft, rng: Random, is_missing: IsMissing) -> Draft:
    """A value that stands twice would give itself away."""
    values = [fact.value for goal in draft.goals for fact in goal.known]
    chosen = [fact for fact in _can_wait(draft) if values.count(fact.value) == 1]
    if not chosen:
        raise UnprovedError("nothing_to_keep_back")
    for missing in rng.sample(chosen, len(chosen)):
        holder = next(goal for goal in draft.goals if missing in goal.known)
        if is_missing(holder, missing):
            break
    else:
        raise UnprovedError("fact_can_be_found_out")
    goals = [
        goal.model_copy(
            update={"known": tuple(_kept(f) if f == missing else f for f in goal.known)}
        )
        for goal in draft.goals
    ]
    return draft.model_copy(update={"goals": tuple(goals)})


class Twins:
    """Tasks that differ from a draft in one fact alone."""

    def __init__(self, domain: Domain, draft: Draft) -> None:
        self._domain = domain
        self._environments: list[tuple[Goal, DomainEnvironment]] = []
        environment = DomainEnvironment.of(domain, draft.initial_state)
        for goal in draft.goals:
            self._environments.append((goal, environment))
            environment = environment.snapshot()
            if goal.possible and goal.tool in domain.programs:
                environment.call(goal.tool, goal.arguments)

    def of(self, goal: Goal, fact: Fact) -> Any:
        """Another argument for which the goal could stand while all that is told stays the same;
        None where none was found."""
        if goal.tool not in self._domain.programs or fact.param not in goal.arguments:
            return None
        environment = next(environment for own, environment in self._environments if own == goal)
        param = self._domain.programs[goal.tool].spec.params[fact.param]
        right = environment.snapshot().call(goal.tool, goal.arguments)
        others = self._others(environment, param, goal.arguments[fact.param], fact)
        for value in islice(others, MAX_TWINS):
            arguments = goal.arguments | {fact.param: value}
            if policy_violations(environment, goal.tool, arguments):
                continue
            result = environment.snapshot().call(goal.tool, arguments)
            differs = result.diff != right.diff or result.observation != right.observation
            if not result.is_error and differs and (result.diff or not goal.writes):
                return value
        return None

    def _others(
        self, environment: DomainEnvironment, param: ParamSpec, value: Any, fact: Fact
    ) -> Iterator[Any]:
        if param.type == "array" and param.items is not None:
            for place, item in enumerate(value):
                for other in self._others(environment, param.items, item, fact):
                    yield [*value[:place], other, *value[place + 1 :]]
        elif param.type == "object":
            for name, part in value.items():
                for other in self._others(environment, (param.properties or {})[name], part, fact):
                    yield value | {name: other}
        elif param.ref:
            yield from self._rows_alike(environment, param.ref, value, fact)
        elif value == fact.value:
            yield from _other_values(param, value)

    def _rows_alike(
        self, environment: DomainEnvironment, entity: str, key: str, fact: Fact
    ) -> Iterator[str]:
        """Rows of which people know the same, but for the fact."""
        own = {leaf.path: leaf.value for leaf in leaves(environment, self._domain, entity, key)}
        key_field = self._domain.entities[entity].key
        for row in environment.rows(entity):
            other = row[key_field]
            alike = {
                leaf.path: leaf.value for leaf in leaves(environment, self._domain, entity, other)
            }
            if fact.value == key and other != key:
                yield other
            elif alike.keys() == own.keys():
                different = [own[path] for path in own if alike[path] != own[path]]
                if different == [fact.value]:
                    yield other


def _other_values(param: ParamSpec, value: Any) -> Iterator[Any]:
    match param.type:
        case "enum":
            yield from (other for other in param.values if other != value)
        case "boolean":
            yield not value
        case "integer" | "number":
            yield from (value + 1, value - 1, value + 2, value * 2, value / 2)
        case "date" | "datetime":
            for days in (1, -1, 2, 7, -7):
                moved = (datetime.fromisoformat(value) + timedelta(days=days)).isoformat()
                yield moved[: len(value)]
        case _:
            yield value[:-1] + ("a" if value.endswith("e") else "e")
            yield f"{value} 2"
