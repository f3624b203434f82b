"""What statements do at run time. A step takes the environment and changes it or the state.

A step that fails raises ToolError or EvaluationError; the interpreter then undoes the whole call.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tool_specs.execution.fields import Check, ids_in
from tool_specs.execution.indexes import Order
from tool_specs.execution.planning import ProbePlan
from tool_specs.execution.state import EntityRow, Table
from tool_specs.language.domain_file import EntitySpec
from tool_specs.language.evaluation import BUDGET, STATE, spend
from tool_specs.language.operators import Env, Evaluator
from tool_specs.language.values import EvaluationError, show_value

PAGE = 50
"""Rows of a page where a read gives pages and names no limit."""

MAX_LISTED = 200
"""Elements of a list in an answer, where a read that is not cut may have filled it."""

MAX_ROWS = 1000
"""Rows of any read, and turns of any for_each."""

MAX_STEPS = 1_000_000
"""Rows looked at and statements run in one call."""

FIRST_NUMBER = 1001
"""Of made ids, so that they look like the ids that people know."""

_MAX_MESSAGE = 1000
"""Characters of an error message: it may quote what the agent sent."""

CompiledStep = Callable[[Env], None]


class ToolError(Exception):
    """The call fails with a code and a message for the agent."""

    def __init__(self, code: str, message: str, statement: int | None = None) -> None:
        super().__init__(message[:_MAX_MESSAGE])
        self.code = code
        self.statement = statement
        """Index of the statement, where one failed."""


def numbered(step: CompiledStep, index: int) -> CompiledStep:
    """Failures of the step say which statement it was."""

    def run(env: Env) -> None:
        try:
            step(env)
        except ToolError as failure:
            if failure.statement is None:
                failure.statement = index
            raise

    return run


class FieldAssignment(NamedTuple):
    """One assignment: where, what, which values may be stored, and what an id must point at."""

    field: str
    run: Evaluator
    check: Check
    to: str | None

    def value(self, env: Env, entity: str) -> Any:
        try:
            value = self.check(self.run(env))
        except EvaluationError as error:
            raise EvaluationError(f"{entity}.{self.field}: {error}") from None
        if self.to is not None:
            for key in ids_in(value):
                need_row(env, self.to, key)
        return value


def need_row(env: Env, entity: str, key: str) -> None:
    if env[STATE].get(entity, key) is None:
        raise ToolError("not_found", f"No {entity} has the id {show_value(key)}.")


def require(condition: Evaluator, code: str, message: Evaluator) -> CompiledStep:
    def step(env: Env) -> None:
        if not condition(env):
            raise ToolError(code, message(env))

    return step


def read_one(
    entity: str, key: Evaluator, slot: int, code: str, message: Evaluator | None
) -> CompiledStep:
    def step(env: Env) -> None:
        wanted = key(env)
        row = env[STATE].get(entity, wanted) if isinstance(wanted, str) else None
        if row is None:
            words = message(env) if message else f"No {entity} has the id {show_value(wanted)}."
            raise ToolError(code, words)
        env[slot] = row

    return step


@dataclass(frozen=True, slots=True)
class PageRead:
    """A read with where: what to look at, what to keep, and where the page goes."""

    entity: str
    candidate: int
    where: Evaluator | None
    plan: ProbePlan
    order: Order
    limit: Evaluator | None
    cursor: Evaluator | None
    slot: int
    next_slot: int
    whole: bool = False
    """Whether it gives all rows where it is given no limit: nothing would tell of a next page."""


def read_page(read: PageRead) -> CompiledStep:
    """Binds one page and the cursor of the next, null on the last page. Rows come in the order
    asked for, so it stops as soon as the page is full.

    A read of the whole fails where more than MAX_ROWS match: a part would pass for all of it.
    """

    def step(env: Env) -> None:
        limit = None if read.limit is None else read.limit(env)
        if limit is None and read.whole:
            found = _matches(env, read, stop=MAX_ROWS + 1)
            if len(found) > MAX_ROWS:
                raise _too_many(f"More than {MAX_ROWS} rows of {read.entity} match")
            env[read.slot], env[read.next_slot] = found, None
            return
        limit = _checked_limit(limit)
        offset = _offset(env, read.cursor)
        end = offset + limit
        found = _matches(env, read, stop=end + 1)
        env[read.slot] = found[offset:end]
        env[read.next_slot] = str(end) if len(found) > end else None

    return step


def _too_many(words: str) -> ToolError:
    return ToolError("too_many", f"{words}. Narrow the search.")


def check_listed(value: Any, name: str = "The answer") -> None:
    """ToolError for an answer with a list that nobody could read."""
    if type(value) is list and len(value) > MAX_LISTED:
        words = f"has {len(value)} entries, and {MAX_LISTED} are the most"
        raise _too_many(f"{name} {words}")
    if type(value) is dict:
        for own, member in value.items():
            if type(member) in (list, dict):
                check_listed(member, own)


def _checked_limit(limit: Any) -> int:
    if limit is None:
        return PAGE
    if type(limit) is not int or limit < 1:
        raise ToolError("invalid_arguments", f"limit must be at least 1, got {show_value(limit)}")
    return min(limit, MAX_ROWS)


def _offset(env: Env, run: Evaluator | None) -> int:
    token = None if run is None else run(env)
    if token is None:
        return 0
    if not (isinstance(token, str) and token.isascii() and token.isdecimal() and len(token) <= 9):
        raise ToolError(
            "invalid_arguments",
            f"cursor must be the one that the last page gave, got {show_value(token)}",
        )
    return int(token)


def _matches(env: Env, read: PageRead, stop: int) -> list[EntityRow]:
    where, candidate, budget = read.where, read.candidate, env[BUDGET]
    found: list[EntityRow] = []
    looked = 0
    for row in candidates(env, read):
        looked += 1
        if looked > budget:
            break
        if where is not None:
            env[candidate] = row
            if not where(env):
                continue
        found.append(row)
        if len(found) == stop:
            break
    spend(env, looked)
    return found


def candidates(env: Env, read: PageRead) -> Iterable[EntityRow]:
    """Rows that may match, in order: those that every probe with a value lets through."""
    table: Table = env[STATE].tables[read.entity]
    wanted: dict[str, Any] = {}
    for probe in read.plan:
        try:
            value = probe.value(env)
        except EvaluationError:
            continue  # the condition may not come to this term
        if value is None and probe.optional:
            continue
        if not isinstance(value, str | int | float | None):
            continue
        if probe.unique:
            row = table.get(value) if isinstance(value, str) else None
            return () if row is None else (row,)
        wanted.setdefault(probe.field, value)
    return table.matching(wanted, read.order)


def create(
    entity: str, spec: EntitySpec, sets: Sequence[FieldAssignment], slot: int
) -> CompiledStep:
    fields, key_field, prefix = tuple(spec.fields), spec.key, spec.prefix

    def step(env: Env) -> None:
        made = {s.field: s.value(env, entity) for s in sets}
        table: Table = env[STATE].tables[entity]
        if prefix is not None:
            number = max(table.last_number(prefix) + 1, FIRST_NUMBER)
            while table.get(f"{prefix}{number}") is not None:
                number += 1  # a seed key with leading zeros sorts elsewhere
            made[key_field] = f"{prefix}{number}"
        key = made[key_field]
        if table.get(key) is not None:
            raise EvaluationError(f"{entity} {show_value(key)} exists already")
        row = {field: made.get(field) for field in fields}
        env[STATE].put(entity, key, row)
        env[slot] = row

    return step


def update(
    entity: str, key: str, slot: int, sets: Sequence[FieldAssignment], row_slots: list[int]
) -> CompiledStep:
    """All values are computed from the row as it was, then stored together."""

    def step(env: Env) -> None:
        old = _present(env, slot, entity)
        _store(env, entity, key, old, {s.field: s.value(env, entity) for s in sets}, row_slots)

    return step


def link(
    entity: str, key: str, slot: int, change: FieldAssignment, row_slots: list[int], *, add: bool
) -> CompiledStep:
    """Add to or take from a list field. Adding twice, or taking what is not there, does nothing."""

    def step(env: Env) -> None:
        old = _present(env, slot, entity)
        item, items = change.run(env), old[change.field] or []
        new = [i for i in items if i != item] if not add else items
        if add and item not in items:
            new = [*items, item]
            if change.to is not None:
                need_row(env, change.to, item)
        checked = change._replace(run=lambda env: new, to=None).value(env, entity)
        _store(env, entity, key, old, {change.field: checked}, row_slots)

    return step


def _present(env: Env, slot: int, entity: str) -> EntityRow:
    """The row that a statement changes."""
    row = env[slot]
    if row is None:
        raise EvaluationError(f"there is no {entity} to change: it is null here")
    return row


def _store(
    env: Env, entity: str, key: str, old: EntityRow, values: EntityRow, row_slots: Sequence[int]
) -> None:
    """Replace a row, and every binding that holds it, so that no binding is out of date."""
    state, name = env[STATE], old[key]
    current = state.get(entity, name)
    if current is None:
        raise EvaluationError(f"{entity} {show_value(name)} was deleted by this call")
    new = {**current, **values}
    state.put(entity, name, new)
    for slot in row_slots:
        held = env[slot]
        if held is current:
            env[slot] = new
        elif type(held) is list:
            held[:] = [new if row is current else row for row in held]


def delete(slot: int, entity: str, *, key: str) -> CompiledStep:
    def step(env: Env) -> None:
        name = _present(env, slot, entity)[key]
        if env[STATE].get(entity, name) is None:
            raise EvaluationError(f"{entity} {show_value(name)} was deleted by this call already")
        env[STATE].put(entity, name, None)

    return step


def for_each(
    over: Evaluator,
    rows: int,
    slot: int,
    steps: Sequence[CompiledStep],
    gathered: Sequence[tuple[int, int]],
) -> CompiledStep:
    """Run the body once per element. What the body binds is a list of its values afterwards."""

    def step(env: Env) -> None:
        items = over(env)
        if not isinstance(items, list):
            raise EvaluationError(f"for_each needs a list, got {show_value(items)}")
        if len(items) > MAX_ROWS:
            raise EvaluationError(f"for_each runs over at most {MAX_ROWS}, got {len(items)}")
        env[rows] = items = list(items)
        for _, outer in gathered:
            env[outer] = []
        for position in range(len(items)):
            env[slot] = items[position]
            spend(env, len(steps))
            for inner in steps:
                inner(env)
            for made, outer in gathered:
                env[outer].append(env[made])
        env[slot] = None

    return step


def let(value: Evaluator, slot: int) -> CompiledStep:
    def step(env: Env) -> None:
        env[slot] = value(env)

    return step


def when(
    condition: Evaluator, slot: int, steps: Sequence[CompiledStep], made: Sequence[int]
) -> CompiledStep:
    """Run the body if the condition holds; otherwise what it would have bound is null."""

    def step(env: Env) -> None:
        env[slot] = holds = condition(env)
        if not holds:
            for inner in made:
                env[inner] = None
            return
        spend(env, len(steps))
        for run in steps:
            run(env)

    return step


def plain(value: Any) -> Any:
    """A copy, so that nobody who holds an answer can reach into the state."""
    if type(value) is dict:
        return {name: plain(member) for name, member in value.items()}
    if type(value) is list:
        return [plain(item) for item in value]
    return value
