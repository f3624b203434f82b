"""The shortest reference plan, found by search over what the tools answer.

Best first (A*) over (user goals granted, ids known). A step is a read that shows an id which the
next user goal still lacks, or the call that grants it; a question whose answer an earlier look-up
has shown costs nothing. Every answer comes from executing the call in the state that it would be
made in. A read is made for the next user goal only: what serves a later one is found when that one
is next.
"""

from collections.abc import Iterator, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any, NamedTuple

from synth.tasks.goals.domain_tools import DomainTool
from synth.tasks.goals.goals import Goal, Step
from synth.tasks.goals.knowledge import MAX_DEPTH, natural_refs
from synth.tasks.goals.lookup import LookupAnswer, Lookups, Needs, RowKey, Views, rows_in
from tool_specs.domains.domain import Domain
from tool_specs.domains.interpreter import CallResult, DomainEnvironment
from tool_specs.language.domain_file import ParamSpec

MAX_NODES = 500
"""Nodes that a search expands before it gives up."""


class Found(NamedTuple):
    steps: tuple[tuple[Step, ...], ...]
    """For each goal, in order."""
    nodes: int
    """Expanded."""

    @property
    def depth(self) -> int:
        return sum(map(len, self.steps))


class _Landmark(NamedTuple):
    """A goal, in the state that the goals before it have led to."""

    goal: Goal
    calls: tuple[Step, ...]
    """The call that grants it, after what the user has to do and after the wait for it; none where
    it is not granted."""
    environment: DomainEnvironment
    lookups: Lookups
    needs: Needs
    """Rows that its arguments name and that the user does not name by id."""
    gains: tuple[tuple[Needs, RowKey], ...]
    """What its own answer shows."""
    near: Needs
    """Rows that it may help to know: those it needs, and those that these name."""
    shown_in: tuple[RowKey, tuple[tuple[str, Any], ...]] | None
    """For a question about one row: the row, and the fields and values asked for."""


class _Read(NamedTuple):
    step: Step
    needs: Needs
    shows: tuple[tuple[Needs, RowKey], ...]
    answers: bool
    """Whether it shows all that the goal asks for."""


SearchNode = tuple[int, Needs]


def shortest_plan(
    domain: Domain,
    tools: Mapping[str, DomainTool],
    goals: Sequence[Goal],
    environment: DomainEnvironment,
    views: Views | None = None,
) -> Found | None:
    """The fewest steps that grant the possible goals in their order, starting from `environment`;
    None where there are none within MAX_NODES. `views` may hold what was looked up already."""
    views = views or Views(domain, tools.values())
    marks = _landmarks(domain, tools, goals, environment, views)
    if marks is None:
        return None
    search = _Search(domain, marks)
    return search.run()


class _Search:
    def __init__(self, domain: Domain, marks: Sequence[_Landmark]) -> None:
        self._domain, self._marks = domain, marks
        self._reads: dict[int, list[_Read]] = {}
        certain = [0 if mark.shown_in else len(mark.calls) for mark in marks]
        self._calls_from = [sum(certain[at:]) for at in range(len(marks))]

    def run(self) -> Found | None:
        start: SearchNode = (0, frozenset[RowKey]())
        came: dict[SearchNode, tuple[SearchNode, tuple[Step, ...]]] = {}
        cost: dict[SearchNode, int] = {start: 0}
        closed, nodes = set[SearchNode](), 0
        # of nodes from which the way may be equally long the furthest comes first; the last member
        # keeps the order in which they were found
        queue: list[tuple[int, int, int, SearchNode]] = [(self._least(start), 0, 0, start)]
        while queue and nodes < MAX_NODES:
            *_, node = heappop(queue)
            if node in closed:
                continue
            if node[0] == len(self._marks):
                return Found(self._traced(node, came), nodes)
            closed.add(node)
            nodes += 1
            for steps, then in self._moves(node):
                total = cost[node] + len(steps)
                if total < cost.get(then, total + 1):
                    cost[then], came[then] = total, (node, steps)
                    estimate = total + self._least(then)
                    heappush(queue, (estimate, -then[0], len(came), then))
        return None

    def _least(self, node: SearchNode) -> int:
        """Steps that are still to be made, at least."""
        at, known = node
        if at == len(self._marks):
            return 0
        return self._calls_from[at] + (not self._marks[at].needs <= known)

    def _traced(
        self, node: SearchNode, came: Mapping[SearchNode, tuple[SearchNode, tuple[Step, ...]]]
    ) -> tuple[tuple[Step, ...], ...]:
        steps: list[list[Step]] = [[] for _ in self._marks]
        while node in came:
            before, made = came[node]
            steps[before[0]][:0] = made
            node = before
        return tuple(map(tuple, steps))

    def _moves(self, node: SearchNode) -> Iterator[tuple[tuple[Step, ...], SearchNode]]:
        at, known = node
        mark = self._marks[at]
        if mark.needs <= known:
            yield mark.calls, (at + 1, _grown(known, mark.gains))
            if mark.shown_in is None:
                return
        for read in self._reads_at(at):
            if read.needs <= known:
                grown = _grown(known, read.shows)
                if read.answers:
                    yield (read.step,), (at + 1, grown)
                elif grown != known:
                    yield (read.step,), (at, grown)

    def _reads_at(self, at: int) -> list[_Read]:
        if at not in self._reads:
            self._reads[at] = list(self._list_reads(self._marks[at]))
        return self._reads[at]

    def _list_reads(self, mark: _Landmark) -> Iterator[_Read]:
        made = list(mark.calls)
        answers = [a for place in sorted(mark.near) for a in mark.lookups.answers(place)]
        # what says more of the row comes first: of plans of one length the plainest is taken
        for answer in sorted(answers, key=lambda answer: -len(answer.step.arguments)):
            if answer.step not in made:
                made.append(answer.step)
                shows = tuple(_shown(mark.lookups, answer, mark.near))
                tells = mark.shown_in is not None and self._tells(mark.shown_in, answer)
                if shows or tells:
                    yield _Read(answer.step, answer.needs, shows, tells)

    def _tells(self, asked: tuple[RowKey, Any], answer: LookupAnswer) -> bool:
        (entity, key), pairs = asked
        key_field = self._domain.entities[entity].key
        return any(
            row[key_field] == key and all(row.get(name) == value for name, value in pairs)
            for row in rows_in(answer.observation, key_field)
        )


def _grown(known: Needs, shows: Sequence[tuple[Needs, RowKey]]) -> Needs:
    return known | {place for needs, place in shows if needs <= known}


def _shown(lookups: Lookups, answer: LookupAnswer, places: Needs) -> Iterator[tuple[Needs, RowKey]]:
    for place in sorted(places):
        for extra in lookups.discloses(answer, place):
            yield extra, place


def _landmarks(
    domain: Domain,
    tools: Mapping[str, DomainTool],
    goals: Sequence[Goal],
    environment: DomainEnvironment,
    views: Views,
) -> list[_Landmark] | None:
    """None where a goal's call fails, so that there is nothing to search."""
    marks: list[_Landmark] = []
    for goal in goals:
        spec = domain.programs[goal.tool].spec if goal.tool in tools else None
        refs = frozenset(_refs(spec.params, goal.arguments)) if spec else frozenset()
        if goal.awaited is not None:
            wait = goal.awaited.wait
            refs |= frozenset(_refs(domain.programs[wait.tool].spec.params, wait.arguments))
        told = {fact.value for fact in goal.known}
        needs = frozenset(p for p in refs if p[1] not in told)
        calls: tuple[Step, ...] = _calls(goal) if spec and goal.possible else ()
        before, environment, result = environment, environment.snapshot(), None
        lookups = views.of(before)
        for call in calls:
            result = environment.call(call.tool, call.arguments)
            if result.is_error:
                return None
        near = _near(before, domain, needs)
        marks.append(
            _Landmark(
                goal,
                calls,
                before,
                lookups,
                needs,
                _gains(lookups, calls[-1], result, near) if calls and result else (),
                near,
                None if result is None or goal.writes else _asked(goal, refs, result),
            )
        )
    return [_with_later(mark, marks[i + 1 :]) for i, mark in enumerate(marks)]


def _with_later(mark: _Landmark, later: Sequence[_Landmark]) -> _Landmark:
    """The landmark, with what its own answer shows of the rows that later ones are about."""
    if not mark.calls or not later:
        return mark
    environment = mark.environment.snapshot()
    (*_, answer) = (environment.call(call.tool, call.arguments) for call in mark.calls)
    near = frozenset().union(*(other.near for other in later))
    more = _gains(later[0].lookups, mark.calls[-1], answer, near)
    return mark._replace(gains=mark.gains + more)


def _calls(goal: Goal) -> tuple[Step, ...]:
    first = [step for step in goal.steps if step.actor == "user"]
    if goal.awaited is not None:
        first.append(goal.awaited.wait)
    return (*first, Step(tool=goal.tool, arguments=goal.arguments))


def _gains(
    lookups: Lookups, call: Step, result: CallResult, near: Needs
) -> tuple[tuple[Needs, RowKey], ...]:
    """Rows that the call made and whose ids it showed, and rows that its answer singles out."""
    answer = LookupAnswer(call, frozenset(), result.observation)
    made = {(c["entity"], c["id"]) for c in result.diff if c["op"] == "create"}
    own = [(frozenset(), place) for place in sorted(made) if _stands_in(place[1], result[0])]
    return (*own, *_shown(lookups, answer, near))


def _stands_in(value: str, observation: Any) -> bool:
    if isinstance(observation, Mapping):
        return any(_stands_in(value, part) for part in observation.values())
    if isinstance(observation, list):
        return any(_stands_in(value, part) for part in observation)
    return observation == value


def _near(environment: DomainEnvironment, domain: Domain, needs: Needs) -> Needs:
    found, fresh = set(needs), set(needs)
    for _ in range(MAX_DEPTH):
        fresh = {
            (to, ref) for place in fresh for _, to, ref in natural_refs(environment, domain, *place)
        } - found
        found |= fresh
    return frozenset(found)


def _asked(
    goal: Goal, refs: Needs, result: CallResult
) -> tuple[RowKey, tuple[tuple[str, Any], ...]] | None:
    """The row that a question is about and what it asks of it, where it is about one row and the
    call says no more than which."""
    if len(refs) != 1 or len(goal.arguments) != 1:
        return None
    (place,) = refs
    wanted = [value for asked in goal.asks for value in asked.values]
    fields = result.observation.items() if isinstance(result.observation, dict) else ()
    pairs = {value: name for name, value in fields if isinstance(value, str | int | float)}
    if not wanted or any(value not in pairs for value in wanted):
        return None
    return place, tuple((pairs[value], value) for value in wanted)


def _refs(params: Mapping[str, ParamSpec], arguments: Mapping[str, Any]) -> Iterator[RowKey]:
    for name, value in arguments.items():
        yield from _refs_in(params[name], value)


def _refs_in(param: ParamSpec, value: Any) -> Iterator[RowKey]:
    if param.type == "object":
        yield from _refs(param.properties or {}, value)
    elif param.type == "array" and param.items is not None:
        for item in value:
            yield from _refs_in(param.items, item)
    elif param.ref:
        yield param.ref, value
