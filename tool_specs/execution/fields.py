"""Values of fields at run time: what may be stored, in which one spelling.

The same check guards seed rows, state patches and every write of a tool, so a state never holds
a value that its entity does not allow.
"""

from collections.abc import Callable, Mapping
from typing import Any

from tool_specs.execution.state import EntityRow
from tool_specs.language.domain_file import EntitySpec, FieldSpec
from tool_specs.language.types import EXAMPLES
from tool_specs.language.values import EvaluationError, in_range, is_date, is_datetime, show_value

MAX_LIST = 1000
"""Elements of a list field."""

MAX_JSON_DEPTH = 12
MAX_JSON_NODES = 20_000
MAX_JSON_CHARS = 200_000
"""Bounds of any value that comes from outside: arguments, seed rows, patches."""

Check = Callable[[Any], Any]
"""The value as it is stored; raises EvaluationError with what is allowed."""


def clean_json(value: Any) -> Any:
    """A copy of a JSON value with one spelling of numbers; refuses what JSON cannot hold.

    Copies, so that nothing a caller keeps can change a state later. Bounded in depth and size.
    """
    return _Cleaner().clean(value, 0)


class _Cleaner:
    def __init__(self) -> None:
        self.nodes = 0
        self.chars = 0

    def clean(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind is str:
            return self.text(value)
        if value is None or kind is bool:
            return value
        if kind is int or kind is float:
            return in_range(value)
        self.nodes += 1
        if depth >= MAX_JSON_DEPTH:
            raise EvaluationError(f"nested deeper than {MAX_JSON_DEPTH} levels")
        if kind is dict:
            self.spend(len(value))
            return {self.key(k): self.clean(v, depth + 1) for k, v in value.items()}
        if kind is list:
            self.spend(len(value))
            return [self.clean(item, depth + 1) for item in value]
        raise EvaluationError(f"{kind.__name__} is not a JSON value")

    def spend(self, nodes: int) -> None:
        self.nodes += nodes
        if self.nodes > MAX_JSON_NODES:
            raise EvaluationError(f"more than {MAX_JSON_NODES} values")

    def key(self, key: Any) -> str:
        if type(key) is not str:
            raise EvaluationError(f"names must be text, got {show_value(key)}")
        return self.text(key)

    def text(self, text: str) -> str:
        self.chars += len(text)
        if self.chars > MAX_JSON_CHARS:
            raise EvaluationError(f"more than {MAX_JSON_CHARS} characters")
        if not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text):
            raise EvaluationError("text with half a surrogate pair is not Unicode")
        return text


def check_of(spec: FieldSpec) -> Check:
    """The check of one field. Whether a ref's row exists is the caller's to ask."""
    check = _list_check(spec) if spec.type == "list" else _check_of_kind(spec.type, spec)
    if spec.optional:
        return lambda value: None if value is None else check(value)
    return check


def _check_of_kind(kind: str, spec: FieldSpec) -> Check:
    match kind:
        case "integer" | "number":
            return _number_check(spec, integral=kind == "integer")
        case "boolean":
            return lambda value: value if type(value) is bool else _refuse("true or false", value)
        case "enum":
            members, allowed = frozenset(spec.values), f"one of {', '.join(spec.values)}"
            return lambda value: (
                value if type(value) is str and value in members else _refuse(allowed, value)
            )
        case "date" | "datetime":
            test, allowed = (
                is_date if kind == "date" else is_datetime,
                f"a {kind} such as {EXAMPLES[kind]}",
            )
            return lambda value: value if test(value) else _refuse(allowed, value)
        case "object":
            return _object_check(spec)
    return _text_check(spec)


def _refuse(allowed: str, value: Any) -> Any:
    raise EvaluationError(f"must be {allowed}, got {show_value(value)}")


def _text_check(spec: FieldSpec) -> Check:
    least, most = (spec.min or 0, spec.max) if spec.type == "string" else (0, None)

    def check(value: Any) -> Any:
        if type(value) is not str:
            return _refuse("text", value)
        if len(value) < least or (most is not None and len(value) > most):
            return _refuse(f"text of {least} to {most or 'any number of'} characters", value)
        return value

    return check


def _number_check(spec: FieldSpec, *, integral: bool) -> Check:
    kinds = (int,) if integral else (int, float)
    least, most = spec.min, spec.max
    allowed = "a whole number" if integral else "a number"
    if least is not None:
        allowed += f" of at least {least}"
    if most is not None:
        allowed += f"{' and' if least is not None else ' of'} at most {most}"

    def check(value: Any) -> Any:
        if type(value) is float:
            value = in_range(value)
        if type(value) not in kinds:
            return _refuse(allowed, value)
        if (least is not None and value < least) or (most is not None and value > most):
            return _refuse(allowed, value)
        return value

    return check


def _list_check(spec: FieldSpec) -> Check:
    # min and max of a list count its items
    item = _check_of_kind(spec.of, spec.model_copy(update={"min": None, "max": None}))
    least, most = int(spec.min or 0), int(MAX_LIST if spec.max is None else spec.max)

    def check(value: Any) -> Any:
        if type(value) is not list:
            return _refuse("a list", value)
        if not least <= len(value) <= most:
            raise EvaluationError(f"must be a list of {least} to {most}, got {len(value)} items")
        return [item(element) for element in value]

    return check


def _object_check(spec: FieldSpec) -> Check:
    if spec.properties is None:
        # copied and bounded, or a row kept inside a row could grow without end, call by call
        return lambda value: (
            clean_json(value) if type(value) is dict else _refuse("an object", value)
        )
    members = {name: check_of(member) for name, member in spec.properties.items()}

    def check(value: Any) -> Any:
        if type(value) is not dict:
            return _refuse("an object", value)
        extra = [name for name in value if name not in members]
        if extra:
            return _refuse(f"an object of {', '.join(members)}", extra[0])
        return {name: _named(name, member, value.get(name)) for name, member in members.items()}

    return check


def _named(name: str, check: Check, value: Any) -> Any:
    try:
        return check(value)
    except EvaluationError as error:
        raise EvaluationError(f"{name} {error}") from None


class RowCheck:
    """Checks whole rows of one entity."""

    def __init__(self, entity: EntitySpec) -> None:
        self.fields = {name: check_of(spec) for name, spec in entity.fields.items()}

    def row(self, values: Mapping[str, Any]) -> EntityRow:
        """The row in field order; missing optional fields are null.

        Raises EvaluationError naming the field.
        """
        unknown = [name for name in values if name not in self.fields]
        if unknown:
            known = ", ".join(self.fields)
            raise EvaluationError(f"{unknown[0]} is not a field; fields: {known}")
        return {
            name: _named(name, check, clean_json(values.get(name)))
            for name, check in self.fields.items()
        }


def refs_of(entity: EntitySpec) -> dict[str, str]:
    """Field -> entity that it points at, single refs and lists of them."""
    return {name: spec.to for name, spec in entity.fields.items() if spec.to is not None}


def ids_in(value: Any) -> list[str]:
    """The ids that a ref field holds: none for null, several for a list."""
    return [] if value is None else value if isinstance(value, list) else [value]
