"""Mutants run on cases until something tells each from its tool; what is left are survivors.

First the cases that fuzzing kept, then made ones (`made_states.py`), at first about anything that
the tool mentions, then about what the mutants that are left mention. A survivor is told in words
that an author can act upon, with the number of cases in which it made no difference.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Any, NamedTuple

from tool_specs.domains.domain import Domain
from tool_specs.domains.interpreter import CallResult, DomainEnvironment
from tool_specs.execution.programs import Entities, Program
from tool_specs.execution.statements import MAX_LISTED, PAGE
from tool_specs.language.domain_file import ToolSpec
from tool_specs.language.expressions import parse, walk
from tool_specs.language.statements import ForEach, Read, Update
from tool_specs.language.syntax.nodes import Access, Literal, Name
from tool_specs.validation.mutation.compiling import compiled_place
from tool_specs.validation.mutation.durations import NO_STATEMENT, duration_places
from tool_specs.validation.mutation.mutants import MutantPlace, expressions_of, places_of
from tool_specs.validation.states.cases import FuzzCase
from tool_specs.validation.states.deciding import deciding
from tool_specs.validation.states.made_states import FIRST_ROWS, StateMaker, ValueChange
from tool_specs.validation.states.measuring import ValueProbe
from tool_specs.validation.states.more_rows import lonely, longer_lists, twins, with_copies
from tool_specs.validation.states.solving import solved

NUM_GENERAL, NUM_AIMED = 60, 300
"""Made cases: about all that the tool mentions, and about what the survivors mention."""

MAX_FLIPPED = 24
"""Cases of different outcomes whose truths and members of enums are exchanged one by one."""


class Examined(NamedTuple):
    num_mutants: int
    survivors: tuple[MutantPlace, ...]
    unexamined: tuple[MutantPlace, ...]
    """Places of which no mutant compiles."""
    cases: tuple[FuzzCase, ...]
    """All that the survivors were run on."""


def examined(
    domain: Domain,
    program: Program,
    seen: Sequence[FuzzCase],
    further: Iterator[FuzzCase],
    maker: StateMaker,
) -> Examined:
    """`seen`: cases that fuzzing kept; `further`: more calls from the seed."""
    entities = Entities.of(domain.file)
    alive: list[tuple[MutantPlace, Domain]] = []
    unexamined: list[MutantPlace] = []
    spec, file = program.spec, domain.file
    places = [*places_of(spec, file), *duration_places(spec, file)]
    for place in places:
        mutated = compiled_place(program, place, entities)
        if mutated is None:
            unexamined.append(place)
            continue
        changed = replace(domain, programs={program.spec.name: mutated})
        if not any(_tells(changed, place, program, case) for case in seen):
            alive.append((place, changed))
    cases = list(seen)
    for case in _more(program, cases, further, maker, alive):
        cases.append(case)
        alive[:] = [(p, d) for p, d in alive if not _tells(d, p, program, case)]
    num_mutants = len(places) - len(unexamined)
    return Examined(num_mutants, tuple(p for p, _ in alive), tuple(unexamined), tuple(cases))


def _more(
    program: Program,
    cases: Sequence[FuzzCase],
    further: Iterator[FuzzCase],
    maker: StateMaker,
    alive: list[tuple[MutantPlace, Domain]],
) -> Iterator[FuzzCase]:
    """As long as mutants are alive."""
    kept = list(cases)
    for case in maker.cases(kept, NUM_GENERAL):
        if not alive:
            return
        yield case
    for case in further:
        if not alive:
            return
        kept.append(case)
        yield case
    for case in _directed(program, kept, maker, alive):
        if not alive:
            return
        kept.append(case)
        yield case
    about = _mentioned(program.spec, [place for place, _ in alive])
    different = _different(kept, {place.statement for place, _ in alive})
    flips = islice(maker.flips(different, about), NUM_AIMED)
    for case in chain(flips, maker.cases(kept, NUM_AIMED, about)) if alive else ():
        if not alive:
            return
        kept.append(case)
        yield case
    for place, _ in list(alive):
        for case in solved(program, place, maker, kept):
            yield case
            if all(other is not place for other, _ in alive):
                break


def _different(cases: Sequence[FuzzCase], indices: Collection[int]) -> list[FuzzCase]:
    """One of each outcome, those first that fail at one of these statements: one value may be all
    that they lack. Then the latest."""
    latest = list({_kind(case): case for case in cases}.values())[::-1]
    return sorted(latest, key=lambda case: case.result.statement not in indices)[:MAX_FLIPPED]


def _kind(case: FuzzCase) -> tuple[Any, ...]:
    result = case.result
    return result.error_code, result.statement, len(result.diff), len(str(result.observation))


def _directed(
    program: Program,
    cases: Sequence[FuzzCase],
    maker: StateMaker,
    alive: list[tuple[MutantPlace, Domain]],
) -> Iterator[FuzzCase]:
    """On the edges of the comparisons where mutants are alive, and with pages that are full."""
    seen = list(cases)
    for base in [case for case in seen if not case.result.is_error][:4]:
        yield from lonely(maker, base)
        yield from longer_lists(maker, base)
    indices = {p.statement: None for p, _ in alive if p.statement != NO_STATEMENT}
    for index in indices:
        for case in deciding(program, index, maker, seen):
            if not any(place.statement == index for place, _ in alive):
                break
            yield case
    optional = [n for n, spec in program.spec.params.items() if spec.optional]
    for name in sorted(program.hints.cursors):  # never drawn: only an earlier page gives one
        for base in [case for case in seen if not case.result.is_error][:4]:
            page = ValueChange("", "", name, "1")
            yield from maker.made(base, [page])
            yield from maker.made(base, [*(ValueChange("", "", n, None) for n in optional), page])
    for place, _ in [pair for pair in alive if pair[0].statement in indices]:
        statement = program.spec.semantics[place.statement]
        if place.reason == "dead_limit" and isinstance(statement, Read):
            yield from _full_pages(statement, seen, maker)
        if place.reason == "dead_order" and isinstance(statement, Read):
            yield from _twins(program, place.statement, statement, seen, maker)


def _twins(
    program: Program, index: int, read: Read, seen: Sequence[FuzzCase], maker: StateMaker
) -> Iterator[FuzzCase]:
    """Rows more that differ from one that is read in what orders them alone."""
    key = maker.domain.entities[read.entity].key
    probe = ValueProbe.of(program, index + 1, f"{read.bind}.{key}", None, maker.domain)
    for base in [case for case in seen if not case.result.is_error][:6]:
        found = (probe.run(base) if probe is not None else None) or []
        for field in read.order_by:
            yield from twins(maker, base, read.entity, field.removeprefix("-"), found)


def _full_pages(read: Read, seen: Sequence[FuzzCase], maker: StateMaker) -> Iterator[FuzzCase]:
    num_copies = PAGE + 1
    match parse(read.limit or "null"):
        case Literal(value=int(limit)) if limit < MAX_LISTED:
            num_copies = limit + 1
    for base in [case for case in seen if not case.result.is_error][:4]:
        rows = base.environment.rows(read.entity)[:FIRST_ROWS]
        yield from with_copies(maker, base, read.entity, num_copies, rows)


def _mentioned(spec: ToolSpec, places: Sequence[MutantPlace]) -> frozenset[str]:
    """Names of fields and parameters in the statements of these places, as they are and as the
    mutants have them, and in the conditions before them."""
    found: set[str] = set()
    for place in places:
        for changed in (spec, *(mutant.spec for mutant in place.mutants[:2])):
            found |= _names_before(changed, place.statement)
    return frozenset(found)


def fields_before(program: Program, index: int) -> frozenset[str]:
    """Names of fields and parameters in a statement, and in what it may depend on before it:
    conditions, names and loops."""
    return _names_before(program.spec, index)


def reads_asked(program: Program, index: int) -> list[int]:
    """Reads by a condition whose rows a statement looks at."""
    trees = [tree for number, _, tree in program.nodes if number == index]
    names = {node.name for tree in trees for node in walk(tree) if isinstance(node, Name)}
    return [
        number
        for number, statement in enumerate(program.spec.semantics[:index])
        if isinstance(statement, Read) and statement.where is not None and statement.bind in names
    ]


def _names_before(spec: ToolSpec, index: int) -> frozenset[str]:
    texts = [
        text
        for number, statement in enumerate(spec.semantics[: index + 1])
        if statement.op in ("require", "when", "let", "for_each") or number == index
        for _, text in expressions_of(statement)
    ]
    nodes = [node for text in texts for node in walk(parse(text))]
    read = frozenset(node.field for node in nodes if isinstance(node, Access))
    changed = spec.semantics[index] if 0 <= index < len(spec.semantics) else None
    # what stands in a field before decides whether to set it changes anything
    return read | frozenset(changed.set if isinstance(changed, Update) else ())


def _tells(changed: Domain, place: MutantPlace, program: Program, case: FuzzCase) -> bool:
    """Whether the call ends otherwise for the mutant: another answer, or another state."""
    failed = case.result.statement
    if failed is not None and failed < place.statement and not _loops(program):
        return False  # the call never came to the place
    name = program.spec.name
    environment = DomainEnvironment(changed, case.environment.state.snapshot())
    other, mine = environment.call(name, case.arguments), case.result
    if (other.observation, other.hash_after) == (mine.observation, mine.hash_after):
        return False
    # the clock alone tells how long a call takes
    return place.statement == NO_STATEMENT or _in_short(other) != _in_short(mine)


def _in_short(result: CallResult) -> Any:
    """Answer and changes, floats rounded: what is taken away as it was added is back."""
    changes = [
        (c["op"], c["entity"], c["id"], _rounded(c["before"]), _rounded(c["after"]))
        for c in result.diff
    ]
    return _rounded(result.observation), [c for c in changes if c[3] != c[4]]


def _rounded(value: Any) -> Any:
    if type(value) is float:
        return round(value, 9)
    if type(value) is dict:
        return {name: _rounded(member) for name, member in value.items()}
    return [_rounded(item) for item in value] if type(value) is list else value


def _loops(program: Program) -> bool:
    return any(isinstance(s, ForEach) for s in program.spec.semantics)
