"""Jobs tried on states made for the purpose: each gets due, runs, keeps the rules and the
lifecycles, comes to an end, and no part of it does nothing.

The states are the seed with some values exchanged, those that the job reads. A job that is one
statement short, or has one term less, must do otherwise in one of them.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from random import Random
from typing import Any, NamedTuple

from records.seeds import rng_of
from tool_specs.domains.domain import LAST_MOMENT, Domain
from tool_specs.execution.fields import check_of, ids_in, refs_of
from tool_specs.execution.invariants import broken_in
from tool_specs.execution.jobs import CompiledJob, JobChange, run_due
from tool_specs.execution.programs import Entities
from tool_specs.execution.state import EntityRow, State
from tool_specs.language.domain_file import FieldSpec, ToolSpec
from tool_specs.language.expressions import parse, walk
from tool_specs.language.jobs import JobSpec, later
from tool_specs.language.statements import Let, Read
from tool_specs.language.syntax.nodes import Access, Literal
from tool_specs.language.values import EvaluationError
from tool_specs.validation.lifecycle_guard import LifecycleGuard
from tool_specs.validation.mutation.compiling import compiled_job
from tool_specs.validation.mutation.mutants import (
    Mutant,
    MutantPlace,
    expressions_of,
    places_of,
)

MAX_STATES, MAX_DRAWS = 120, 500
"""States in which a job is tried, and draws of values that look for them."""

MOMENTS = 8
"""Moments at which jobs run in one state."""

MOST_RUNS = 200
"""Jobs that may run in a state at one moment."""

_ROWS = 12
_SOON_S = (20 * 60, 45 * 60, 3 * 3600, 30 * 3600)
_MAX_PROBLEMS = 4


class JobTrial(NamedTuple):
    problems: tuple[str, ...]
    """Sentences for the author; none of a good job."""
    survivors: tuple[str, ...] = ()
    """Bounds, constants and names that no state told from their neighbours."""


class _Played(NamedTuple):
    """What came of letting time pass."""

    changes: list[JobChange]
    fault: str | None


class _Slot(NamedTuple):
    entity: str
    key: str
    field: str


def job_trial(domain: Domain, name: str) -> JobTrial:
    """Of one job of the domain, whose other jobs run beside it. Deterministic."""
    job = next(job for job in domain.jobs if job.spec.name == name)
    made = islice(_states(domain, job.spec), MAX_STATES)
    tried = [(state, _played(domain, domain.jobs, state)) for state in made]
    tried = [(state, play) for state, play in tried if not _elsewhere(play.fault, domain, job.spec)]
    states, plays = [state for state, _ in tried], [play for _, play in tried]
    faults = dict.fromkeys(play.fault for play in plays if play.fault is not None)
    if not faults:
        faults = dict.fromkeys(words for state in states for words in _broken(domain, state, name))
    if faults:
        return JobTrial(tuple(islice(faults, _MAX_PROBLEMS)))
    if not any(change["job"] == name for play in plays for change in play.changes):
        words = f"no {job.spec.entity} of the seed gets due, and none whose values are exchanged"
        return JobTrial((f"{words}: `where` never holds, or `due` is null or past every moment",))
    alive = [
        place
        for place, mutated in _mutants(domain, job.spec)
        if not _told(domain, mutated, states, plays)
    ]
    told = f"it does the same in {len(states)} states"
    grave = [f"{_place(p.words)} {told}: is it needed?" for p in alive if p.grave]
    light = [f"{_place(p.words)} {told}" for p in alive if not p.grave]
    return JobTrial(tuple(grave[:_MAX_PROBLEMS]), tuple(light))


def _played(domain: Domain, jobs: Sequence[CompiledJob], start: State) -> _Played:
    """The first moments at which something falls due."""
    state, changes = start.snapshot(), []
    try:
        for _ in range(MOMENTS):
            following = _next_moment(jobs, state)
            if following is None:
                break
            changes += run_due(jobs, state, following, domain.dangling, most=MOST_RUNS)
    except EvaluationError as error:
        return _Played(changes, str(error))
    return _Played(changes, None)


def _next_moment(jobs: Sequence[CompiledJob], state: State) -> str | None:
    following = [due.at for job in jobs for due in job.due_rows(state, LAST_MOMENT)]
    return max(state.now, min(following)) if following else None


def _broken(domain: Domain, start: State, name: str) -> Iterator[str]:
    """Rules and lifecycles that the job does not keep."""
    state, guard = start.snapshot(), LifecycleGuard(domain)
    for _ in range(MOMENTS):
        following = _next_moment(domain.jobs, state)
        if following is None:
            return
        before = state.snapshot()
        changes = run_due(domain.jobs, state, following, domain.dangling, most=MOST_RUNS)
        own: list[Any] = [change for change in changes if change["job"] == name]
        yield from (f"do: {words}" for words in guard.told(own, before, state, {}))
        broken = list(broken_in(state, domain.file, domain.invariants))
        for path, words in broken if own else ():
            yield f"do: after it ran, {path.removeprefix('seed.')} {words}"
        if broken:
            return


def _elsewhere(fault: str | None, domain: Domain, job: JobSpec) -> bool:
    """Whether it broke down on a field of another row: what that counts may not fit a status that
    no move has set, which is no evidence of a fault."""
    field = re.search(r": (\w+)\.\w+: ", fault or "")
    return field is not None and field[1] in domain.entities and field[1] != job.entity


def _states(domain: Domain, job: JobSpec) -> Iterator[State]:
    """The seed, and the seed with values exchanged that the job reads, where every rule holds."""
    yield domain.seed_state.snapshot()
    rng = rng_of(domain.name, f"job_trial:{job.name}")
    nodes = [node for text in _texts(job) for node in walk(parse(text))]
    fields = {node.field for node in nodes if isinstance(node, Access)}
    fields |= {f"{name}_id" for name in fields}  # a path goes on by a reference
    literals = [node.value for node in nodes if isinstance(node, Literal)]
    due = {node.field for node in walk(parse(job.due)) if isinstance(node, Access)}
    rows = list(domain.seed_state.tables[job.entity].rows())[:_ROWS]
    for number in range(MAX_DRAWS if rows else 0):
        row = rows[number % len(rows)]
        slots = _slots(domain, job, row, fields)
        state = domain.seed_state.snapshot()
        chosen = rng.sample(slots, min(len(slots), rng.randint(1, 5)))
        chosen += [
            s for s in slots if s.field in due and s.entity == job.entity and rng.random() < 0.7
        ]
        if all(_put(domain, state, slot, literals, rng) for slot in dict.fromkeys(chosen)):
            state.commit()
            if not any(True for _ in broken_in(state, domain.file, domain.invariants)):
                yield state


def _slots(domain: Domain, job: JobSpec, row: EntityRow, fields: set[str]) -> list[_Slot]:
    """Values of the row, of those that it refers to, and of those that the job searches."""
    found: dict[tuple[str, str], EntityRow] = {}
    waiting = [(job.entity, row[domain.entities[job.entity].key])]
    for entity in {s.entity for s in job.do if isinstance(s, Read) and s.key is None}:
        key = domain.entities[entity].key if entity in domain.entities else ""
        waiting += [(entity, r[key]) for r in islice(domain.seed_state.tables[entity].rows(), 4)]
    for entity, key in waiting:  # grows while it is walked
        own = domain.seed_state.get(entity, key)
        if own is not None and (entity, key) not in found and len(found) < _ROWS:
            found[entity, key] = own
            refs = refs_of(domain.entities[entity]).items()
            waiting += [(to, other) for field, to in refs for other in ids_in(own[field])[:2]]
    return [
        _Slot(entity, key, field)
        for entity, key in found
        for field, spec in domain.entities[entity].fields.items()
        if field in fields and field != domain.entities[entity].key and spec.type != "list"
    ]


def _put(domain: Domain, state: State, slot: _Slot, literals: list[Any], rng: Random) -> bool:
    """False for a value that the field does not take."""
    row, spec = state.get(slot.entity, slot.key), domain.entities[slot.entity].fields[slot.field]
    values = _values(domain, spec, row and row[slot.field], literals)
    if row is None or not values:
        return False
    try:
        value = check_of(spec)(rng.choice(values))
    except EvaluationError:
        return False
    state.put(slot.entity, slot.key, {**row, slot.field: value})
    return True


def _values(domain: Domain, spec: FieldSpec, old: Any, literals: list[Any]) -> list[Any]:
    """What may stand in the field instead."""
    none = [None] if spec.optional else []
    match spec.type:
        case "boolean":
            return [True, False, *none]
        case "enum":
            return [*(v for v in spec.values if v in literals), *spec.values, *none]
        case "datetime":
            soon = [later(domain.now, seconds) for seconds in _SOON_S]
            return [*soon, later(domain.now, -3600), *none]
        case "date":
            return [later(domain.now, s)[:10] for s in (-86_400, 0, 86_400)] + none
        case "integer" | "number":
            known = [v for v in literals if type(v) in (int, float)]
            near = [v + d for v in known for d in (-1, 0, 1)]
            bounds = [v for v in (spec.min, spec.max) if v is not None]
            return [*near, *bounds, *([old, old + 1, old - 1] if old is not None else [0]), *none]
        case "ref":
            rows = islice(domain.seed_state.tables[spec.to or ""].rows(), _ROWS)
            return [row[domain.entities[spec.to or ""].key] for row in rows] + none
    return [*(v for v in literals if type(v) is str), *([old] if old is not None else []), *none]


def _texts(job: JobSpec) -> Iterator[str]:
    yield from (job.where, job.due)
    for statement in job.do:
        yield from (text for _, text in expressions_of(statement))


def _mutants(domain: Domain, job: JobSpec) -> Iterator[tuple[MutantPlace, CompiledJob]]:
    """Every place of the job whose mutant compiles. Its `where` and `due` are looked at as if they
    were the first two statements of a tool."""
    read = Read.model_validate(
        {"op": "read", "entity": job.entity, "where": job.where, "as": "rows"}
    )
    due = Let.model_validate({"op": "let", "as": "due", "be": job.due})
    spec = ToolSpec(name=job.name, description=job.text, semantics=[read, due, *job.do])
    entities = Entities.of(domain.file)
    for place in places_of(spec, domain.file):
        if place.statement == 0 and not place.words.startswith("semantics[0].where"):
            continue  # the read itself
        for mutant in place.mutants:
            if (compiled := _compiled(job, mutant, entities)) is not None:
                yield place, compiled
                break


def _compiled(job: JobSpec, mutant: Mutant, entities: Entities) -> CompiledJob | None:
    read, due, *do = mutant.spec.semantics
    assert isinstance(read, Read)
    assert isinstance(due, Let)
    changed = job.model_copy(update={"where": read.where or "true", "due": due.be, "do": do})
    earlier = replace(
        mutant,
        detached=frozenset(i - 2 for i in mutant.detached),
        emptied=frozenset(i - 2 for i in mutant.emptied),
    )
    return compiled_job(changed, earlier, entities)


def _told(
    domain: Domain, mutated: CompiledJob, states: Sequence[State], plays: Sequence[_Played]
) -> bool:
    name = mutated.spec.name
    jobs = [mutated if job.spec.name == name else job for job in domain.jobs]
    return any(
        _played(domain, jobs, state) != play for state, play in zip(states, plays, strict=True)
    )


def _place(words: str) -> str:
    """As the author of a job knows the place."""
    words = words.replace("semantics[0].where", "where").replace("semantics[1].be", "due")
    return re.sub(r"semantics\[(\d+)\]", lambda found: f"do[{int(found[1]) - 2}]", words)
