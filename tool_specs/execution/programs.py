"""What compiling a tool gives, and what it needs to know of the domain around it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tool_specs.execution.statements import CompiledStep
from tool_specs.language.domain_file import DomainFile, ToolSpec
from tool_specs.language.evaluation import ARGS, Env, Evaluator, Scope, compile_condition
from tool_specs.language.expressions import parse
from tool_specs.language.parameters import Hints, PlacedNode
from tool_specs.language.schemas import Validator
from tool_specs.language.statements import WRITING_OPS
from tool_specs.language.syntax.tokens import ExpressionError
from tool_specs.language.types import Type


class Problems:
    """What is wrong, each with the path inside the file."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def add(self, path: str, message: str) -> None:
        self.found.append(f"{path}: {message}")


@dataclass(frozen=True, slots=True)
class Program:
    """One tool, ready to run."""

    spec: ToolSpec
    steps: tuple[CompiledStep, ...]
    answer: Evaluator
    num_slots: int
    errors: tuple[tuple[int, str], ...]
    """(statement index, code) of every failure that the tool declares."""
    output_schema: dict[str, Any]
    validator: Validator
    nodes: tuple[PlacedNode, ...]
    """Every expression, for those who reason about the tool."""
    scans: tuple[int, ...]
    """Indexes of reads that may look at rows which they do not give: what they cost grows with the
    rows of the entity. All other statements cost the same in an environment of any size."""
    hints: Hints
    """Which fields its parameters are compared with or stored in."""
    rows: Mapping[str, str]
    """Name in the semantics -> entity of the row, or the rows, that it stands for."""
    whole: bool = False
    """Whether a read may give all rows that there are: then the lists of an answer are bounded."""
    takes: Callable[[Env], int] | None = None
    """Seconds that a call takes or waits, from its arguments and the state before it; it may raise
    ToolError. None for a tool whose calls take no time."""

    @property
    def read_only(self) -> bool:
        return not any(statement.op in WRITING_OPS for statement in self.spec.semantics)


@dataclass(frozen=True, slots=True)
class Entities:
    """What compiling needs to know of a domain, derived once for all its tools."""

    file: DomainFile
    types: Mapping[str, Type]

    @classmethod
    def of(cls, file: DomainFile) -> "Entities":
        return cls(file, {name: spec.as_type(name) for name, spec in file.entities.items()})


def args_type(spec: ToolSpec) -> Type:
    return Type("object", fields={name: param.as_type() for name, param in spec.params.items()})


def compile_rule(
    forbids: str, spec: ToolSpec, entities: Entities, path: str, problems: Problems
) -> Evaluator:
    """The condition of a policy rule, over the arguments of the tool and lookups."""
    try:
        scope = Scope({"args": (ARGS, args_type(spec))}, entities.types)
        return compile_condition(parse(forbids), scope)
    except ExpressionError as error:
        problems.add(path, f"{forbids!r}: {error}")
        return lambda env: False
