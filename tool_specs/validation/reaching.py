"""What the seed does not offer, looked for in states made for the purpose: a first success, and
statuses from which a lifecycle has no move to where the tool takes a row.
"""

from collections.abc import Iterator
from itertools import chain, islice

from tool_specs.validation.fuzzing import Fuzzer, ToolReport
from tool_specs.validation.states.cases import FuzzCase
from tool_specs.validation.states.deciding import deciding
from tool_specs.validation.states.made_states import StateMaker, ValueChange
from tool_specs.validation.survivors import fields_before, reads_asked

MADE_SUCCESS = "a success"
"""Stands in `proof.made_for` where the seed offers no success."""

_TRIES = 400
"""Made cases that look for a way past one statement."""
_FRONT = 4
"""Cases that came furthest, of which those are made."""
_MORE = 60
"""Made cases around the first success, for others with other answers."""


def note_made_success(fuzzer: Fuzzer, report: ToolReport, maker: StateMaker) -> None:
    """Of a tool that never succeeded from the seed: all that fuzzing notes of successes, of made
    ones. Nothing where none is found."""
    first = _first_success(fuzzer, report, maker)
    if first is None:
        return
    report.made.append(MADE_SUCCESS)
    others = (case for case in maker.cases([first], _MORE) if not case.result.is_error)
    for case in chain([first], others):
        after = case.environment.snapshot()
        after.call(report.name, case.arguments)
        fuzzer.note(report.name, case, after)


def _first_success(fuzzer: Fuzzer, report: ToolReport, maker: StateMaker) -> FuzzCase | None:
    """From the failures that came furthest past one statement after the other."""
    program = fuzzer.domain.programs[report.name]
    cases = [case for case in report.cases if case.result.statement is not None]
    while cases:
        index = max(_place(case) for case in cases)
        front = [case for case in cases if _place(case) == index][:_FRONT]
        asked = reads_asked(program, index)
        about = fields_before(program, index).union(*(fields_before(program, i) for i in asked))
        decided = (deciding(program, i, maker, front) for i in (index, *asked))
        tries = chain(
            chain.from_iterable(decided),
            islice(maker.flips(front, about), _TRIES),
            maker.cases(front, _TRIES, about),
        )
        further = next((c for c in tries if not c.result.is_error or _place(c) > index), None)
        if further is None or not further.result.is_error:
            return further
        cases = [further]
    return None


def _place(case: FuzzCase) -> int:
    """Index of the statement where the call failed; -1 where it was none."""
    return -1 if case.result.statement is None else case.result.statement


def past_lifecycles(fuzzer: Fuzzer, report: ToolReport, maker: StateMaker) -> Iterator[str]:
    """Sentences, for moves that no lifecycle declares: each row whose status a success changed is
    given its other statuses before the call."""
    seen: set[tuple[str, str, str]] = set()
    for base in [case for case in report.cases if not case.result.is_error]:
        for change in base.result.diff:
            spec = fuzzer.domain.entities[change["entity"]]
            field = spec.lifecycle_field
            if change["op"] != "update" or field is None or field not in change["after"]:
                continue
            for status in spec.fields[field].values:
                move = (change["entity"], status, change["after"][field])
                if move not in seen:
                    other = ValueChange(change["entity"], change["id"], field, status)
                    for case in maker.made(base, [other]):
                        seen.add(move)
                        yield from _bypassed(fuzzer, report.name, case)


def _bypassed(fuzzer: Fuzzer, name: str, case: FuzzCase) -> Iterator[str]:
    if case.result.is_error or not case.result.diff:
        return
    after = case.environment.snapshot()
    after.call(name, case.arguments)
    yield from fuzzer.guard.bypassed(
        case.environment, after.state, name, case.arguments, case.result
    )
