"""What an answer tells: results that are always the same, and two results that are one.

A result that is a field as it stands may well be the same in every call: the status that the call
has just set, or the one that it requires. A result that is computed, or written down, tells nothing
if it never changes.
"""

from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import Any, NamedTuple

from tool_specs.execution.programs import Program
from tool_specs.language.domain_file import DomainFile
from tool_specs.language.expressions import parse
from tool_specs.language.statements import Create, Return, Update
from tool_specs.language.syntax.nodes import Access, Literal, Name
from tool_specs.language.values import equal
from tool_specs.validation.fuzzing import Defect
from tool_specs.validation.mutation.mutants import expressions_of
from tool_specs.validation.states.cases import FuzzCase

_PATH = tuple[str, ...]


class _Result(NamedTuple):
    path: _PATH
    """Names that lead to it; none for an answer that is one value."""
    text: str

    @property
    def name(self) -> str:
        return ".".join(self.path) or "answer"


def idle_results(program: Program, file: DomainFile, cases: Iterable[FuzzCase]) -> Iterator[Defect]:
    """Of the successes among the cases, as many of which are asked for as it takes."""
    results = list(_results(program))
    said = _stored_constants(program) + _members(file)
    constant: dict[_Result, Any] = {r: _UNSEEN for r in results if _computed(r.text, said)}
    same = [
        (one, other)
        for one, other in combinations(results, 2)
        if one.path[:-1] == other.path[:-1] and one.path
    ]
    for case in cases:
        if not (constant or same):
            return
        if case.result.is_error:
            continue
        answer = case.result.observation
        for result, before in list(constant.items()):
            value = _at(answer, result.path)
            if before is _UNSEEN:
                constant[result] = value
            elif not equal(before, value):
                del constant[result]
        same = [pair for pair in same if equal(*(_at(answer, r.path) for r in pair))]
    for result in constant:
        words = f"the result {result.name} ({result.text}) was the same in every call"
        yield Defect("constant_result", f"{words}: leave it out, or give what was done or found")
    for one, other in same:
        words = f"the results {one.name} and {other.name} were the same in every call"
        yield Defect("dead_field", words)


_UNSEEN = object()


def _results(program: Program) -> Iterator[_Result]:
    last = program.spec.semantics[-1]
    if isinstance(last, Return):
        yield from (_Result(path[1:], text) for path, text in expressions_of(last))


def _stored_constants(program: Program) -> list[Any]:
    """Values that the call writes whatever it is called with: an answer may say them again."""
    texts = [
        text
        for statement in program.spec.semantics
        if isinstance(statement, Create | Update)
        for text in statement.set.values()
    ]
    trees = map(parse, texts)
    return [tree.value for tree in trees if isinstance(tree, Literal)]


def _members(file: DomainFile) -> list[Any]:
    """Names of states and kinds: an answer that names one says what is, or what would be."""
    fields = [field for entity in file.entities.values() for field in entity.fields.values()]
    return [value for field in fields for value in field.values]


def _computed(text: str, said: list[Any]) -> bool:
    tree = parse(text)
    if isinstance(tree, Literal):
        return not any(equal(tree.value, value) for value in said)
    return not isinstance(tree, Access | Name)


def _at(answer: Any, path: _PATH) -> Any:
    for name in path:
        answer = answer[name]
    return answer
