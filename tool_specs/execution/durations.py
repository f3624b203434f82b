"""How long a call of a tool takes: a constant, or a bounded expression of its arguments."""

from collections.abc import Callable
from typing import Any

from tool_specs.execution.programs import Entities, Problems, args_type
from tool_specs.execution.statements import ToolError
from tool_specs.language.domain_file import ToolSpec
from tool_specs.language.evaluation import ARGS, Env, Scope, compile_expression
from tool_specs.language.expressions import parse
from tool_specs.language.jobs import MOST_TAKEN_S, MOST_WAITED_S, seconds_in
from tool_specs.language.syntax.nodes import Node
from tool_specs.language.syntax.tokens import ExpressionError
from tool_specs.language.types import NUMBER_KINDS, Type
from tool_specs.language.values import show_value

Seconds = Callable[[Env], int]
"""Of a call, from an environment that holds its arguments and the state before it."""


def duration_node(spec: ToolSpec) -> tuple[str, Node] | None:
    """(`takes` or `waits`, its expression); None where it is a constant, absent or unreadable."""
    name, text = _declared(spec)
    if text is None or seconds_in(text) is not None:
        return None
    try:
        return name, parse(text)
    except ExpressionError:
        return None  # said by `compile_duration`


def compile_duration(spec: ToolSpec, entities: Entities, problems: Problems) -> Seconds | None:
    """None for a tool whose calls take no time."""
    name, text = _declared(spec)
    if text is None:
        return None
    path = f"tools[{spec.name}].{name}"
    most = MOST_WAITED_S if name == "waits" else MOST_TAKEN_S
    constant = seconds_in(text)
    if constant is not None:
        if constant > most:
            problems.add(path, f"{text!r} is too long; at most {most // 60} minutes")
        return lambda env: constant
    try:
        scope = Scope({"args": (ARGS, args_type(spec))}, entities.types)
        typed = compile_expression(parse(text), scope)
    except ExpressionError as error:
        problems.add(path, f"{text!r}: {error}; or write a duration such as 90 seconds")
        return None
    if words := _no_minutes(typed.type):
        problems.add(path, f"{text!r} {words}")

    def seconds(env: Env) -> int:
        minutes: Any = typed.run(env)
        if type(minutes) not in (int, float) or not 0 <= minutes * 60 <= most:
            shown = show_value(minutes)
            words = f"{spec.name} {name} 0 to {most // 60} minutes, got {shown}"
            raise ToolError("invalid_arguments", words)
        return round(minutes * 60)

    return seconds


def _declared(spec: ToolSpec) -> tuple[str, str | None]:
    return ("waits", spec.waits) if spec.waits is not None else ("takes", spec.takes)


def _no_minutes(type_: Type) -> str | None:
    if type_.kind not in NUMBER_KINDS:
        return f"must be a number of minutes, got {type_}; or write a duration such as 90 seconds"
    if type_.nullable:
        return "may be null; give the parameter a default, or write coalesce(..., 0)"
    return None
