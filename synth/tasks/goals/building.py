"""Build goals one after another in a state: draw a call, prove it by executing it, and search for
what the user must know and the agent must look up so that it can be made.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from random import Random
from typing import Any, NamedTuple

from records.tables.splits import Split
from synth.tasks.goals.arguments import Drawer
from synth.tasks.goals.asking import asked_of_read, asked_of_write
from synth.tasks.goals.domain_tools import DomainTool
from synth.tasks.goals.equal_rows import equals_of
from synth.tasks.goals.goals import Asked, Awaited, Fact, Goal, Step
from synth.tasks.goals.knowledge import (
    Leaf,
    label_of,
    leaves,
    meant_by_words,
    plain_values,
    words_of,
)
from synth.tasks.goals.lookup import Lookups, Views, unique_steps
from synth.tasks.goals.parts import ArgumentPart, id_label, parts_of, value_label
from synth.tasks.goals.waiting import (
    NOT_DECLARED,
    DueMoment,
    WaitingTool,
    rows_near,
    taken_back,
)
from tool_specs.domains.domain import Domain
from tool_specs.domains.interpreter import CallResult, DomainEnvironment, policy_violations

TRIES = 40
"""Draws of arguments for one goal before it is given up."""


_NOTHING = object()


class Grounding(NamedTuple):
    """How the arguments of a call are known."""

    facts: list[Fact]
    lookups: list[Step]
    labels: dict[str, str]


class Builder:
    """A task under construction. `environment` is the state after the goals built so far."""

    def __init__(
        self,
        domain: Domain,
        environment: DomainEnvironment,
        tools: Mapping[str, DomainTool],
        *,
        rng: Random,
        views: Views | None = None,
        split: Split | None = None,
    ) -> None:
        """`tools` are those that the agent has; `views` may hold what was looked up already; new
        values belong to `split`."""
        self.domain = domain
        self.start = environment
        """The state before the first goal."""
        self.environment = environment
        self.tools = tools
        self.goals: list[Goal] = []
        self.diffs: list[dict[str, Any]] = []
        self._rng = rng
        self._split: Split | None = split
        self._drawer = Drawer(domain, rng, split=split)
        self.made: set[tuple[str, str]] = set()
        """(entity, key) of rows that the goals so far have made, and whose ids were shown."""
        self.views = views or Views(domain, tools.values())
        self._first: dict[tuple[str, str, str], Any] = {}
        self._wanted: set[tuple[str, str, str]] = set()

    def fork(self) -> "Builder":
        """A builder that goes on from here and leaves this one as it is: for goals of the same
        matter, whose rows hang together. Both draw from one rng."""
        other = copy(self)
        other.goals, other.diffs, other.made = [*self.goals], [*self.diffs], {*self.made}
        other._first, other._wanted = {**self._first}, {*self._wanted}
        other._drawer = Drawer(self.domain, self._rng, closely=True, split=self._split)
        other._drawer.recent, other._drawer.made = [*self.recent], [*self._drawer.made]
        return other

    @property
    def rng(self) -> Random:
        return self._rng

    @property
    def recent(self) -> list[tuple[str, str]]:
        """(entity, key) of the rows that the goals so far are about."""
        return self._drawer.recent

    @property
    def plan(self) -> list[Step]:
        return [step for goal in self.goals for step in goal.steps]

    def add(
        self,
        tool: DomainTool,
        *,
        violating: bool = False,
        possible: bool = True,
        tries: int = TRIES,
    ) -> bool:
        """Append a goal on `tool`; False when none of the draws works out.

        `violating`: the call succeeds but breaks a rule, so that it must not be made.
        `possible=False`: the user goal cannot or must not be granted, and the state stays as it is.
        """
        for _ in range(tries):
            arguments = self._drawer.draw(self.environment, tool)
            if bool(policy_violations(self.environment, tool.name, arguments)) != violating:
                continue
            after = self.environment.snapshot()
            result = after.call(tool.name, arguments)
            if result.is_error or (not tool.read_only and not self.is_new(result)):
                continue
            goal = self._goal(tool, arguments, result, possible=possible)
            if goal is None:
                continue
            self.goals.append(goal)
            if possible:
                self.keep(goal, result, after)
            return True
        return False

    def add_after(self, own: DomainTool, *, tries: int = TRIES) -> bool:
        """Append a goal that fails until the user has called its `own` tool; False when none of the
        draws works out. What the tool is told must be among what the user knows for the goal."""
        writes = [tool for tool in self.tools.values() if not tool.read_only]
        for _ in range(tries if writes else 0):
            step = Step(
                tool=own.name, arguments=self._drawer.draw(self.environment, own), actor="user"
            )
            ready = self.environment.snapshot()
            enabled = ready.call(step.tool, step.arguments)
            if enabled.is_error or not enabled.diff:
                continue
            self._drawer.recent = [(change["entity"], change["id"]) for change in enabled.diff]
            tool = self._rng.choice(writes)
            arguments = self._drawer.draw(ready, tool)
            after = ready.snapshot()
            result = after.call(tool.name, arguments)
            if result.is_error or policy_violations(ready, tool.name, arguments):
                continue
            if not self.environment.snapshot().call(tool.name, arguments).is_error:
                continue  # needs nothing of the user
            goal = self._goal(tool, arguments, result, possible=True)
            if goal is None or not _tells(goal, step):
                continue
            self.goals.append(goal.model_copy(update={"steps": _before_call(goal.steps, step)}))
            self.diffs += enabled.diff
            self.keep(goal, result, after)
            return True
        return False

    def add_awaited(self, waiting: WaitingTool, *, tries: int = TRIES) -> bool:
        """Append a goal that fails now, with an error that its tool declares, and not after a wait
        in which a job runs; rather a job that an earlier goal has set going. False when none of the
        draws works out."""
        moments = waiting.moments(self.environment)
        touched = {(change["entity"], change["id"]) for change in self.diffs}
        started = [moment for moment in moments if touched & moment.rows]
        recent = self._drawer.recent
        for number in range(tries if moments else 0):
            moment = self._rng.choice(started if started and number % 2 == 0 else moments)
            near = rows_near(self.environment, self.domain, moment.rows)
            self._drawer.recent = sorted(near)
            tool = self._waited_for_tool({entity for entity, _ in near})
            if tool and self._add_after_wait(waiting, tool, moments[: moments.index(moment) + 1]):
                return True
        self._drawer.recent = recent
        return False

    def _add_after_wait(
        self, waiting: WaitingTool, tool: DomainTool, moments: Sequence[DueMoment]
    ) -> bool:
        """Append a call of the tool, with a wait for the first of the moments that makes it
        possible."""
        near = self._drawer.recent
        arguments = self._drawer.draw(self.environment, tool)
        refused = self.environment.snapshot().call(tool.name, arguments).error_code
        if refused is None or refused in NOT_DECLARED:
            return False
        named = [p.row for p in parts_of(tool.spec.params, arguments) if p.row is not None]
        for moment in moments:
            wait = waiting.step(moment.minutes, (moment.rows, named, near), self._rng)
            ready = self.environment.snapshot()
            if wait is None or ready.call(wait.tool, wait.arguments).is_error:
                continue
            after = ready.snapshot()
            result = after.call(tool.name, arguments)
            if not result.is_error:
                break
        else:
            return False
        if (
            policy_violations(ready, tool.name, arguments)
            or not self.is_new(result)
            or taken_back(self.domain, moment, self.environment, ready, after)
        ):
            return False
        goal = self._goal(tool, arguments, result, possible=True)
        if goal is None:
            return False
        text = next(job.spec.text for job in self.domain.jobs if job.spec.name == moment.job)
        awaited = Awaited(
            job=moment.job, happens=text, wait=wait, minutes=waiting.minutes, error=refused
        )
        self.goals.append(self._with_wait(goal, awaited, waiting.tool))
        self.keep(goal, result, after)
        return True

    def _waited_for_tool(self, entities: set[str]) -> DomainTool | None:
        """One that changes something, takes a row of these entities, and has no goal yet."""
        used = {goal.tool for goal in self.goals}
        fitting = [
            tool
            for tool in self.tools.values()
            if tool.writes and tool.name not in used and tool.takes_any(entities)
        ]
        return self._rng.choice(fitting) if fitting else None

    def _with_wait(self, goal: Goal, awaited: Awaited, tool: DomainTool) -> Goal:
        """The goal with what is known of where to wait, which the agent can do without."""
        where = {k: v for k, v in awaited.wait.arguments.items() if k != awaited.minutes}
        grounding = self.ground(tool, where)
        told = [fact.value for fact in goal.known]
        more = [
            fact.model_copy(update={"label": f"{fact.label} to wait for", "needed": False})
            for fact in grounding.facts
            if fact.value not in told
        ]
        steps = unique_steps([*(s for s in grounding.lookups if s not in self.plan), *goal.steps])
        return goal.model_copy(
            update={
                "awaited": awaited,
                "known": (*goal.known, *more),
                "steps": _before_call(tuple(steps), awaited.wait),
            }
        )

    def changes_if_granted(self, goal: Goal) -> list[dict[str, Any]]:
        """What the call of an impossible user goal would change."""
        return list(self.environment.snapshot().call(goal.tool, goal.arguments).diff)

    def drawn(self, tool: DomainTool) -> dict[str, Any]:
        """Arguments for a call of the tool, which the environment has yet to accept."""
        return self._drawer.draw(self.environment, tool)

    def keep(self, goal: Goal, result: CallResult, after: DomainEnvironment) -> None:
        """The goal's call was made: `after` is the state from now on."""
        self.environment = after
        self.diffs += result.diff
        said = [value for value in plain_values(goal.arguments) if isinstance(value, str)]
        shown = list(plain_values(result.observation))
        for change in result.diff:
            entity, key = change["entity"], change["id"]
            if change["op"] == "create" and key in shown:
                self.made.add((entity, key))
            for field, value in (change["after"] or {}).items():
                if change["op"] == "update":
                    self._first.setdefault((entity, key, field), change["before"][field])
                if isinstance(value, str) and (change["op"] == "update" or value in said):
                    self._wanted.add((entity, key, field))
        touched = [(c["entity"], c["id"]) for c in result.diff if c["op"] != "delete"]
        self._drawer.recent = list(dict.fromkeys([*self._drawer.recent, *touched]))
        self._drawer.made = sorted(self.made)

    def is_new(self, result: CallResult) -> bool:
        """A change that takes nothing back: no text that was wished for is overwritten, nothing
        that an earlier user goal changed is again as it was, nothing that it made is gone."""
        for change in result.diff:
            entity, key = change["entity"], change["id"]
            if change["op"] == "delete" and (entity, key) in self.made:
                return False
            for field, value in (change["after"] or {}).items() if change["op"] == "update" else ():
                place = (entity, key, field)
                if place in self._wanted or self._first.get(place, _NOTHING) == value:
                    return False
        return bool(result.diff) and not self._only_marks_made(result.diff)

    def _only_marks_made(self, diff: list[dict[str, Any]]) -> bool:
        """One text in a row that was just made, nothing else: calling it off, most often."""
        if len(diff) != 1 or diff[0]["op"] != "update":
            return False
        values = list((diff[0]["after"] or {}).values())
        is_made = (diff[0]["entity"], diff[0]["id"]) in self.made
        return is_made and len(values) == 1 and isinstance(values[0], str)

    def _goal(
        self, tool: DomainTool, arguments: dict[str, Any], result: CallResult, *, possible: bool
    ) -> Goal | None:
        call = Step(tool=tool.name, arguments=arguments)
        plan = self.plan
        if tool.read_only and call in plan:
            return None
        grounding = self.ground(tool, arguments)
        asks = self.asked_of(tool, result, grounding.facts) if possible else ()
        if tool.read_only and not asks:
            return None
        steps = [*grounding.lookups, call] if possible else grounding.lookups
        return Goal(
            tool=tool.name,
            description=tool.spec.description,
            arguments=arguments,
            labels=grounding.labels,
            known=tuple(grounding.facts),
            asks=asks,
            steps=tuple(step for step in unique_steps(steps) if step == call or step not in plan),
            writes=not tool.read_only,
            possible=possible,
        )

    def asked_of(
        self, tool: DomainTool, result: CallResult, facts: Sequence[Fact]
    ) -> tuple[Asked, ...]:
        """What the user wants to be told of the call, who knows `facts` and those of earlier
        goals."""
        told = [fact for goal in self.goals for fact in goal.known]
        known = [fact.value for fact in (*told, *facts)]
        if tool.read_only:
            return asked_of_read(result.observation, known, self._ids(), self._rng)
        return asked_of_write(result, known, self._rng)

    def _ids(self) -> set[str]:
        """The id of every row: nothing that a user asks for."""
        entities = self.domain.entities.items()
        return {row[spec.key] for name, spec in entities for row in self.environment.rows(name)}

    def _is_meant(self, entity: str, key: str) -> bool:
        """Whether people's words mean this row, or rows that nothing has ever told from it."""
        meant = meant_by_words(self.environment, self.domain, entity, key)
        return meant == {key} or (
            bool(meant)
            and meant == equals_of(self.environment, self.domain, entity, key)
            and meant == equals_of(self.start, self.domain, entity, key)
        )

    def ground(self, tool: DomainTool, arguments: dict[str, Any]) -> Grounding:
        """Facts and look-ups for every argument; ids that no look-up finds are told."""
        lookups = self.views.of(self.environment)
        grounding = Grounding([], [], {})
        for part in parts_of(tool.spec.params, arguments):
            grounding.labels.setdefault(part.place[0], words_of(part.place[0]))
            if part.param.ref:
                self._ground_ref(lookups, grounding, part, part.param.ref)
            else:
                label = value_label(tool, part.place, part.param)
                grounding.facts.append(part.fact(label, part.value))
        return grounding

    def _ground_ref(
        self, lookups: Lookups, grounding: Grounding, part: ArgumentPart, entity: str
    ) -> None:
        key = part.value
        role = " ".join(words_of(name) for name in part.place)
        if (entity, key) not in self._drawer.recent:
            self._drawer.recent.append((entity, key))
        known: list[Leaf] = []
        if self._is_meant(entity, key):
            known = leaves(self.environment, self.domain, entity, key)
        facts = [part.fact(label_of(leaf, role), leaf.value) for leaf in known]
        if (entity, key) in self.made:
            grounding.labels[part.place[0]] = f"{role} made just before"
            grounding.facts.extend(facts or [part.fact(role, "the one made just before")])
        elif known and (steps := lookups.find((entity, key))) is not None:
            grounding.lookups.extend(steps)
            grounding.facts.extend(facts)
        else:
            grounding.facts.append(part.fact(id_label(role, words_of(entity)), key))


def _tells(goal: Goal, step: Step) -> bool:
    """Whether the user knows every value that its own tool is told."""
    known = [fact.value for fact in goal.known]
    return all(value in known for value in plain_values(step.arguments))


def _before_call(steps: tuple[Step, ...], step: Step) -> tuple[Step, ...]:
    return (*steps[:-1], step, steps[-1])
