"""Values of a tool's expressions just before one of its statements: measured by running the tool
up to it, with a return of them in its place. The body of a loop is measured in its first turn, and
that of a condition whether it holds or not.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from tool_specs.domains.domain import Domain, compile_tools
from tool_specs.domains.interpreter import DomainEnvironment
from tool_specs.execution.programs import Entities, Problems, Program
from tool_specs.language.expressions import Literal, show
from tool_specs.language.statements import AnyStatement, ForEach, Let, Read, Return, When
from tool_specs.validation.states.cases import FuzzCase
from tool_specs.validation.states.near_values import moment_of

_UNREAD = ("nothing in the semantics reads it", "leave this statement out")
"""What a compiler says of what only the cut part of a tool reads."""
_EPOCH = datetime(1970, 1, 1)
_DAY = 24 * 60
_TIME_OF_DAY = re.compile(r"(\d\d):(\d\d)")


@dataclass(frozen=True)
class ValueProbe:
    """A tool that answers with values."""

    name: str
    domain: Domain
    """Has this one tool."""

    @classmethod
    def of(
        cls, program: Program, index: int, value: str, row: AnyStatement | None, domain: Domain
    ) -> "ValueProbe | None":
        """For an expression, with the read of one row before it. None where it cannot stand there,
        as with a name that is not known yet."""
        spec = program.spec
        before = [*flat(spec.semantics[:index]), *([row] if row is not None else [])]
        answer = Return.model_validate({"op": "return", "value": {"value": value}})
        changed = spec.model_copy(update={"semantics": [*before, answer]})
        problems = Problems()
        found = compile_tools([changed], Entities.of(domain.file), problems).get(spec.name)
        refused = [p for p in problems.found if not p.endswith(_UNREAD)]
        return None if found is None or refused else cls(spec.name, domain.with_tools([found]))

    def run(self, case: FuzzCase) -> Any:
        """None also where the call fails before."""
        state = case.environment.state.snapshot()
        result = DomainEnvironment(self.domain, state).call(self.name, case.arguments)
        return None if result.is_error else result.observation["value"]


def row_read(entity: str, key: str, name: str) -> Read:
    """The read of one row by its key."""
    text = show(Literal(key))
    return Read.model_validate({"op": "read", "entity": entity, "key": text, "as": name})


def flat(statements: Sequence[AnyStatement]) -> list[AnyStatement]:
    """The way through all bodies: without their conditions, and with the first turn of a loop."""
    names = {s.bind for s in statements if isinstance(s, When | ForEach)}
    flat: list[AnyStatement] = []
    for statement in statements:
        if isinstance(statement, ForEach):
            be = f"first({statement.over})"
            flat.append(Let.model_validate({"op": "let", "as": statement.bind, "be": be}))
        elif not isinstance(statement, When):
            inside = None if statement.inside in names else statement.inside
            flat.append(statement.model_copy(update={"inside": inside}))
    return flat


def difference(left: Any, right: Any) -> float | None:
    """Left minus right: numbers, two dates in days, moments and times of day in minutes; None of
    anything else."""
    if type(left) in (int, float) and type(right) in (int, float):
        return left - right
    one, other = _minutes(left), _minutes(right)
    if one is None or other is None:
        return None
    return (one - other) / (_DAY if len(left) == len(right) == 10 else 1)


def _minutes(value: Any) -> float | None:
    if not isinstance(value, str):
        return None
    if found := _TIME_OF_DAY.fullmatch(value):
        return int(found[1]) * 60 + int(found[2])
    moment = moment_of(value)
    return None if moment is None else (moment - _EPOCH).total_seconds() / 60


def shifted(old: Any, by: float) -> Any:
    """A number plus `by`, a date so many days later, a date-time so many minutes later."""
    if not isinstance(old, str):
        value = round(old + by, 6)
        return int(value) if value == int(value) else value
    moment = moment_of(old)
    assert moment is not None, "only moments and numbers are shifted"
    try:
        if len(old) == 10:
            return (moment + timedelta(days=round(by))).date().isoformat()
        return (moment + timedelta(minutes=round(by))).isoformat()
    except OverflowError:
        return old
