"""YAML from outside to checked models: bounded, safe, and with errors that say where."""

from collections.abc import Hashable
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from records.errors import ConfigError
from tool_specs.language.values import show_value

MAX_FILE_BYTES = 2_000_000
"""A domain file is pages, not megabytes; large states are built in code."""

MAX_DEPTH = 30
MAX_PROBLEMS = 20
"""Problems that one error lists."""

Model = TypeVar("Model", bound=BaseModel)


_Safe: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml where PyYAML was built with it: a sixth of the time."""


class _Loader(_Safe):
    """Safe YAML in which a key stands once. Timestamps stay text: dates are ISO strings."""


def _mapping(loader: Any, node: yaml.MappingNode) -> dict[Any, Any]:
    result: dict[Any, Any] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, Hashable) or key in result:
            raise _refused(f"key {show_value(key)} stands twice", key_node.start_mark)
        result[key] = loader.construct_object(value_node, deep=True)
    return result


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)
_Loader.add_constructor("tag:yaml.org,2002:timestamp", lambda loader, node: str(node.value))


def _refused(problem: str, mark: yaml.Mark) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(None, None, problem, mark)


def _refuse_aliases_and_depth(text: str) -> None:
    """Before anything is built: aliases multiply, and depth is recursion later on."""
    depth = 0
    for event in yaml.parse(text, Loader=_Safe):
        if isinstance(event, yaml.AliasEvent):
            raise _refused("aliases are not allowed", event.start_mark)
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise _refused(f"nested deeper than {MAX_DEPTH} levels", event.start_mark)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def read_yaml(path: Path, *, max_bytes: int = MAX_FILE_BYTES) -> Any:
    """The document of a YAML file. Raises ConfigError naming the file and the line."""
    return parse_yaml(file_bytes(path, max_bytes=max_bytes), origin=str(path))


def file_bytes(path: Path, *, max_bytes: int = MAX_FILE_BYTES) -> bytes:
    """What a definition's file holds. Raises ConfigError where it is missing or too large."""
    if not path.is_file():
        raise ConfigError(f"{path}: no such file")
    size = path.stat().st_size
    if size > max_bytes:
        raise ConfigError(f"{path}: {size} bytes, at most {max_bytes} are allowed")
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: not readable: {error.strerror or error}") from None


def load_definition(model: type[Model], path: Path) -> Model:
    """The document of a YAML file as the model, with the errors of `read_yaml` and `checked`."""
    return checked(model, read_yaml(path), origin=str(path))


def definitions_in(folder: Path, model: type[Model]) -> list[Model]:
    """Those of the folder's `*.yaml`, in the order of the file names."""
    return [load_definition(model, path) for path in sorted(folder.glob("*.yaml"))]


def parse_yaml(content: bytes, *, origin: str) -> Any:
    """As `read_yaml`, for content from elsewhere."""
    try:
        text = content.decode()
        _refuse_aliases_and_depth(text)
        return yaml.load(text, Loader=_Loader)  # derives from a safe loader
    except UnicodeDecodeError as error:
        raise ConfigError(f"{origin}: not UTF-8 text: {error.reason}") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f" line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise ConfigError(f"{origin}:{where}: {error.problem}") from None
    except (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError) as error:
        # PyYAML's own, for tags whose text does not fit, such as `!!bool maybe`
        raise ConfigError(f"{origin}: not YAML: {error}") from None


def checked(model: type[Model], data: Any, *, origin: str) -> Model:
    """The data as the model. Raises ConfigError listing path, value and what is allowed."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise refusal(origin, [_problem(dict(e), data) for e in error.errors()]) from None


def refusal(origin: str, problems: list[str]) -> ConfigError:
    """One error for all problems, one line each."""
    shown = problems[:MAX_PROBLEMS]
    if len(problems) > len(shown):
        shown = [*shown, f"and {len(problems) - len(shown)} more"]
    return ConfigError("\n".join(f"{origin}: {problem}" for problem in shown))


def _problem(error: dict[str, Any], data: Any) -> str:
    words = error["msg"].removeprefix("Value error, ")
    got = "" if error["type"] in ("missing", "value_error") else f", got {_shown(error['input'])}"
    return f"{_path(error['loc'], data) or 'the file'}: {words}{got}"


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return f"an object of {', '.join(map(str, value)) or 'nothing'}"[:80]
    return show_value(value) if not isinstance(value, list) else f"a list of {len(value)}"


def _path(location: tuple[Any, ...], data: Any) -> str:
    """`tools[cancel_order].semantics[2].set`: list elements by name where they have one."""
    path = ""
    for step in location:
        if isinstance(data, dict) and step in data:
            data = data[step]
            path += f".{step}" if path else str(step)
        elif isinstance(data, list) and isinstance(step, int) and step < len(data):
            data = data[step]
            name = data.get("name", data.get("id")) if isinstance(data, dict) else None
            path += f"[{name if isinstance(name, str) else step}]"
        elif isinstance(step, str) and not (isinstance(data, dict) and data.get("op") == step):
            path += f".{step}" if path else step  # missing or unknown; a union's tag is no step
    return path
