"""Cases solved for one mutant that nothing else has told from its tool.

Where the mutant's place is compared with something (`questions.py`), one value at a time is moved
(`unknowns.py`): how far both sides move with it tells where they meet, and the case lies there and
next to it. Where nothing is compared, values are written in a way that shows what the place does:
with more digits, other capitals, blanks around them, another time of the day, one row more.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from tool_specs.domains.domain import Domain
from tool_specs.execution.fields import ids_in, refs_of
from tool_specs.execution.programs import Program
from tool_specs.execution.state import EntityRow
from tool_specs.language.expressions import parse, walk
from tool_specs.language.statements import AnyStatement, Read
from tool_specs.language.syntax.nodes import Access, Call, Literal
from tool_specs.validation.mutation.mutants import MutantPlace, expressions_of
from tool_specs.validation.mutation.trees import sites_of
from tool_specs.validation.states.cases import FuzzCase
from tool_specs.validation.states.grounds import DecidedCase
from tool_specs.validation.states.made_states import StateMaker, ValueChange
from tool_specs.validation.states.measuring import ValueProbe, row_read
from tool_specs.validation.states.more_rows import with_copies
from tool_specs.validation.states.naming import CANDIDATE, Around, with_candidate
from tool_specs.validation.states.questions import ComparedSides, Parting, exchange_of, questions_of
from tool_specs.validation.states.unknowns import MovableValue, unknowns_of

MAX_SOLVED, MAX_WRITTEN = 800, 100
"""Cases made for one mutant, and of these with values of one case written otherwise."""

_BASES = 6
_ROWS_OF_READ = 3
_ROWS = 24
_TURNS = 4
"""Steps of the search for the point at which two sides meet."""
_EDGES = 4
"""Cases on an edge whose values are written otherwise."""
_COPIES = (1, 2)
_COPIED = 2
"""Rows of an entity of which more are made."""


def solved(
    program: Program, place: MutantPlace, maker: StateMaker, seen: Sequence[FuzzCase]
) -> Iterator[FuzzCase]:
    """At most `MAX_SOLVED`; none for a mutant that is no other expression."""
    found = exchange_of(program.spec, place)
    if found is not None:
        yield from islice(_Search(program, place, found, maker).cases(seen), MAX_SOLVED)


class _Start(NamedTuple):
    """A case that others are made of, with the rows that its call reads."""

    case: FuzzCase
    rows: list[tuple[str, EntityRow]]


class _Search:
    def __init__(
        self, program: Program, place: MutantPlace, found: Parting, maker: StateMaker
    ) -> None:
        self.program, self.place, self.found, self.maker = program, place, found, maker
        self.domain: Domain = maker.domain
        self.around = Around(program, found.statement, self.domain)
        self.about = _names(program, found.statement)
        [at] = [site.node for site in sites_of(found.old) if site.path == found.path]
        self.function = at.function if isinstance(at, Call) else None
        self.reads = [
            (read, probe)
            for read in program.spec.semantics[: found.statement + 1]
            if isinstance(read, Read)
            and (probe := self._keys_of(read, program.spec.semantics.index(read)))
        ]

    def _keys_of(self, read: Read, index: int) -> ValueProbe | None:
        key = self.domain.entities[read.entity].key
        return ValueProbe.of(self.program, index + 1, f"{read.bind}.{key}", None, self.domain)

    def cases(self, seen: Sequence[FuzzCase]) -> Iterator[FuzzCase]:
        edges: list[FuzzCase] = []
        starts: list[_Start] = []
        for base in self._bases(seen):
            for case in self._led_there(base):
                if case is not base:
                    yield case
                starts.append(_Start(case, self._rows(case)))
        for start in starts:
            for question in self._questions(start):
                for case in self._met(question, start):
                    edges.append(case)
                    yield case
        ends = [_Start(case, self._rows(case)) for case in edges[-_EDGES:]]
        for start in [*ends, *starts]:
            yield from islice(self._otherwise(start), MAX_WRITTEN)

    def _led_there(self, base: FuzzCase) -> Iterator[FuzzCase]:
        """The case, that without what may be left out, and each with values by which what stands
        around the place leaves the decision to it."""
        optional = [n for n, spec in self.program.spec.params.items() if spec.optional]
        left = [ValueChange("", "", n, None) for n in optional if n in base.arguments]
        for case in [base, *(self.maker.made(base, left) if left else ())]:
            yield case
            row: AnyStatement | None = None
            tree, statement = self.found.old, self.program.spec.semantics[self.found.statement]
            if self.found.member == "where" and isinstance(statement, Read):
                rows = case.environment.rows(statement.entity)[:1]
                key = self.domain.entities[statement.entity].key
                if not rows:
                    continue
                row = row_read(statement.entity, rows[0][key], CANDIDATE)
                tree = with_candidate(tree, statement.entity)
            ground = DecidedCase(self.around, self.maker, case, row)
            for site in sites_of(self.around.inlined(tree)):
                if site.path == self.found.path:
                    yield from ground.made(ground.beside(site, 0))

    def _bases(self, seen: Sequence[FuzzCase]) -> list[FuzzCase]:
        """The latest of different outcomes: successes, and calls that came to the statement."""
        late: dict[object, FuzzCase] = {}
        for case in seen:
            result = case.result
            if not result.is_error:
                late[len(result.diff), len(str(result.observation)) // 8] = case
            elif (result.statement or 0) >= self.found.statement:
                late[result.statement, result.error_code] = case
        ordered = sorted(late.values(), key=lambda case: case.result.is_error)
        return ordered[:_BASES]

    def _questions(self, start: _Start) -> Iterator[ComparedSides]:
        statement = self.program.spec.semantics[self.found.statement]
        keys: list[str | None] = [None]
        if self.found.member == "where" and isinstance(statement, Read):
            spec = self.domain.entities[statement.entity]
            own = [row[spec.key] for entity, row in start.rows if entity == statement.entity]
            keys = [*own[:_ROWS_OF_READ]]
        for key in keys:
            yield from questions_of(self.program, self.place, self.found, key, self.domain)

    def _rows(self, case: FuzzCase) -> list[tuple[str, EntityRow]]:
        """Those that the reads find, others that they look at, and those that these refer to."""
        state = case.environment.state
        waiting: list[tuple[str, str]] = []
        for read, probe in self.reads:
            keys = ids_in(probe.run(case))
            waiting += [(read.entity, key) for key in keys[:_ROWS_OF_READ]]
        for read, _ in self.reads:
            key = self.domain.entities[read.entity].key
            if read.key is None:
                first = islice(state.tables[read.entity].rows(), _ROWS_OF_READ)
                waiting += [(read.entity, row[key]) for row in first]
        found: dict[tuple[str, str], EntityRow] = {}
        for entity, key in waiting:  # grows while it is walked
            row = state.get(entity, key)
            if row is None or (entity, key) in found or len(found) >= _ROWS:
                continue
            found[entity, key] = row
            for field, target in refs_of(self.domain.entities[entity]).items():
                waiting += [(target, other) for other in ids_in(row[field])[:2]]
        return [(entity, row) for (entity, _), row in found.items()]

    def _unknowns(self, start: _Start) -> Iterator[MovableValue]:
        params = self.program.spec.params
        return unknowns_of(start.case, params, start.rows, self.domain, self.about)

    def _met(self, question: ComparedSides, start: _Start) -> Iterator[FuzzCase]:
        """Cases in which the two sides meet, or nearly do."""
        gaps = question.gaps(start.case)
        if all(gap is None for gap in gaps):
            return
        for unknown in self._unknowns(start):
            if unknown.is_moved:
                yield from self._solved(question, start.case, unknown, gaps)

    def _solved(
        self,
        question: ComparedSides,
        base: FuzzCase,
        unknown: MovableValue,
        gaps: tuple[float | None, ...],
    ) -> Iterator[FuzzCase]:
        for step in unknown.steps:
            after = self._gaps(question, base, unknown, step)
            roots: list[float] = []
            for place, (one, other) in enumerate(zip(gaps, after, strict=False)):
                if one is None or other is None or one == other:
                    continue
                root = self._root(question, base, unknown, place, step, one, other)
                roots.append(root)
                small = () if unknown.integral else (0.01, -0.01)
                for extra in (0, 1, -1, *small):
                    yield from self._moved(base, unknown, root + extra)
            if roots:
                yield from self._moved(base, unknown, sum(roots) / len(roots))
                return

    def _root(
        self,
        question: ComparedSides,
        base: FuzzCase,
        unknown: MovableValue,
        place: int,
        step: float,
        gap: float,
        after: float,
    ) -> float:
        """How far the value is moved until the sides meet: by secants, since they may be far from
        straight."""
        last, at = 0.0, step
        for _ in range(_TURNS):
            following = at - after * (at - last) / (after - gap)
            last, at, gap = at, following, after
            found = self._gaps(question, base, unknown, at)
            value = found[place] if place < len(found) else None
            if value is None or value in (gap, 0):
                break
            after = value
        return at

    def _gaps(
        self, question: ComparedSides, base: FuzzCase, unknown: MovableValue, by: float
    ) -> tuple[float | None, ...]:
        for case in self._moved(base, unknown, by):
            return question.gaps(case)
        return ()

    def _moved(self, base: FuzzCase, unknown: MovableValue, by: float) -> Iterator[FuzzCase]:
        if abs(by) < 1e9:
            yield from self.maker.made(base, [unknown.put(unknown.moved(by))])

    def _otherwise(self, start: _Start) -> Iterator[FuzzCase]:
        yield from self._written_otherwise(start)
        for entity in dict.fromkeys(entity for entity, _ in start.rows):
            own = [row for name, row in start.rows if name == entity][:_COPIED]
            for num_copies in _COPIES:
                for case in with_copies(self.maker, start.case, entity, num_copies, own):
                    yield case
                    yield from self._written_otherwise(_Start(case, [(entity, own[0])]))

    def _written_otherwise(self, start: _Start) -> Iterator[FuzzCase]:
        for unknown in self._unknowns(start):
            for value in unknown.written_otherwise(self.function):
                yield from self.maker.made(start.case, [unknown.put(value)])


def _names(program: Program, index: int) -> frozenset[str]:
    """Fields that the statements up to this one, and the members of lists, are read of."""
    texts = [
        text
        for statement in program.spec.semantics[: index + 1]
        for _, text in expressions_of(statement)
    ]
    nodes = [node for text in texts for node in walk(parse(text))]
    picked = {
        str(item.value)
        for node in nodes
        if isinstance(node, Call) and node.function == "pick"
        for item in node.arguments[1:]
        if isinstance(item, Literal)
    }
    return frozenset(node.field for node in nodes if isinstance(node, Access)) | picked
