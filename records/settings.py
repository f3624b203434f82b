"""Settings of any kind: TOML files, `--set key=value` overrides, and errors a person can act on."""

import difflib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError

from records.config import RENAMED_ERROR
from records.errors import ConfigError

ModelT = TypeVar("ModelT", bound=BaseModel)

_MOST_HINTS = 3

_SECRET = re.compile(
    r"(api|access|secret|private)_?key|password|secret|bearer|token\b|\bsk-", re.IGNORECASE
)


def read_settings(
    path: Path, overrides: Sequence[str] = (), options: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, Any]:
    """The content of a TOML file with `options`, settings that options of a command stand for, and
    `overrides` ("a.b=value") applied on top. ConfigError for a file that is missing or no TOML."""
    if not path.is_file():
        raise ConfigError(f"no config file {path}; `configs/` has examples")
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from error
    return with_overrides(merged(values, options), overrides)


def with_overrides(values: dict[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """`values` with each dotted `key=value` set; changed in place and returned."""
    for override in overrides:
        _apply(values, override)
    return values


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of both, `above` winning; tables are merged, and lists are replaced."""
    both = dict(below)
    for name, value in above.items():
        under = both.get(name)
        if isinstance(value, dict) and isinstance(under, dict):
            value = merged(under, value)
        both[name] = value
    return both


def validate_as(kind: type[ModelT], values: dict[str, Any], *, where: str) -> ModelT:
    """Settings of any kind. Raises ConfigError naming each setting that is wrong."""
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        lines = [_explain(problem, kind) for problem in error.errors()]
        raise ConfigError(f"{where}: " + "; ".join(lines)) from error
    except ConfigError as error:  # of a setting whose value may not be shown, or a file it names
        raise ConfigError(f"{where}: {error}") from error


def renamed_settings(kind: type[BaseModel], values: dict[str, Any]) -> dict[str, Any]:
    """Settings that a dataset recorded, perhaps under earlier names, under today's."""
    today = {earlier: name for name, earlier in getattr(kind, "RENAMED", {}).items()}
    named = {today.get(name, name): value for name, value in values.items()}
    for name, value in named.items():
        if name in kind.model_fields:
            annotation = kind.model_fields[name].annotation
            inner = model_in(annotation)
            if inner is not None and isinstance(value, dict):
                many = get_origin(annotation) is dict
                named[name] = (
                    {key: renamed_settings(inner, one) for key, one in value.items()}
                    if many
                    else renamed_settings(inner, value)
                )
    return named


def _apply(values: dict[str, Any], override: str) -> None:
    """Set one dotted key."""
    key, equals, text = override.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"--set wants key=value, such as --set concurrency=4, got {override!r}")
    value = _value_of(text)
    *parents, last = key.strip().split(".")
    for parent in parents:
        values = values.setdefault(parent, {})
        if not isinstance(values, dict):
            raise ConfigError(f"--set {override}: {parent!r} is a value, it has no settings in it")
    values[last] = value


def _value_of(text: str) -> Any:
    """Read as TOML where it parses, else as JSON, else as plain text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        pass
    try:
        return json.loads(text)
    except ValueError:
        return text


def _explain(problem: Any, kind: type[BaseModel]) -> str:
    place = ".".join(str(part) for part in problem["loc"]) or "the file"
    if problem["type"] == RENAMED_ERROR:
        earlier, name = (
            ".".join(str(part) for part in (*problem["loc"], problem["ctx"][which]))
            for which in ("earlier", "name")
        )
        return f"{earlier} is called {name} now"
    if problem["type"] == "extra_forbidden":
        hint = _hint(problem["loc"], kind)
        return f"unknown setting {place} = {_shown(place, problem['input'])}; {hint}"
    words = problem["msg"].removeprefix("Value error, ")
    if wanted := _WANTED.get(problem["type"]):
        annotation = _annotation_at(problem["loc"], kind)
        words = f"wants a {wanted}, such as {_sample(annotation)}" if annotation else words
    if isinstance(problem["input"], dict):  # a table: what is wrong is one setting in it, or two
        return f"{place}: {words}"
    return f"{place} = {_shown(place, problem['input'])}: {words}"


_WANTED = {
    "tuple_type": "list",
    "list_type": "list",
    "dict_type": "table",
    "model_type": "table",
}
"""By the type of pydantic's error, what a setting must be."""


def _annotation_at(location: Sequence[int | str], kind: type[BaseModel]) -> Any:
    """The type of the setting there; None for a place that no model knows."""
    here: Any = kind
    for part in location:
        model, arguments = model_in(here), get_args(here)
        if get_origin(here) is dict:
            here = arguments[1]
        elif isinstance(part, int) and arguments:
            here = arguments[0]
        elif model is not None and part in model.model_fields:
            here = model.model_fields[part].annotation
        else:
            return None
    return here


def _sample(annotation: Any) -> str:
    """A value of a type as TOML writes it within a line."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return json.dumps(arguments[0])
    if origin in (tuple, list):
        return f"[{_sample(arguments[0])}]"
    if origin is dict:
        return f"{{NAME = {_sample(arguments[1])}}}"
    if (model := model_in(annotation)) is not None:
        fields = model.model_fields
        name = next((n for n, field in fields.items() if field.is_required()), next(iter(fields)))
        return f"{{{name} = {_sample(fields[name].annotation)}}}"
    if arguments:  # of a union, the first
        return _sample(arguments[0])
    return {bool: "true", int: "1", float: "1.0"}.get(annotation, '"..."')


def _hint(location: Sequence[int | str], kind: type[BaseModel]) -> str:
    """What an unknown setting may stand for: names much like it in the same table, or the same
    name in other tables; else all that the table has."""
    name, known = str(location[-1]), _fields_at(location[:-1], kind)
    elsewhere = [place for place in dotted_names(kind) if place.rpartition(".")[2] == name]
    found = difflib.get_close_matches(name, known, n=_MOST_HINTS) or elsewhere[:_MOST_HINTS]
    if not found:
        return f"known settings: {', '.join(known)}"
    return f"did you mean {' or '.join(map(repr, found))}?"


def dotted_names(kind: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Every setting that a file may hold, tables before what is in them. NAME stands for a key of
    a table of tables, an index is left out."""
    for name, field in kind.model_fields.items():
        yield f"{prefix}{name}"
        if inner := model_in(field.annotation):
            key = ".NAME" if get_origin(field.annotation) is dict else ""
            yield from dotted_names(inner, f"{prefix}{name}{key}.")


def _shown(place: str, value: Any) -> str:
    """The value, unless the setting's name or the value itself hints at a key: logs keep it."""
    text = repr(value)
    return "(not shown, it may be a secret)" if _SECRET.search(f"{place} {text}") else text


def _fields_at(location: Sequence[int | str], kind: type[BaseModel]) -> list[str]:
    """Names of the settings inside the model at a location; empty where there is none."""
    model: Any = kind
    for part in location:
        if isinstance(part, int) or not hasattr(model, "model_fields"):
            continue
        if part in model.model_fields:  # else it is a key of a dict of models
            model = model_in(model.model_fields[part].annotation)
    return sorted(model.model_fields) if hasattr(model, "model_fields") else []


def model_in(annotation: Any) -> Any:
    """The pydantic model named by an annotation, also inside `dict[str, M]` or `M | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    inner = [model_in(argument) for argument in getattr(annotation, "__args__", ())]
    return next((model for model in inner if model is not None), None)
