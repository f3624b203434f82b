"""The JSON value of a file that somebody else wrote: JSON, JSON lines or YAML, plain or gzipped.

Reading is bounded in bytes, depth and values, whatever aliases and merge keys stand for.
"""

import gzip
import json
import zlib
from pathlib import Path
from typing import Any, ClassVar

import yaml

from records.errors import ConfigError

MAX_FILE_BYTES = 512 << 20
"""Unpacked."""

MAX_YAML_NODES = 2_000_000
"""With aliases written out: a few lines of YAML can stand for more values than memory holds."""

MAX_YAML_DEPTH = 200
MAX_YAML_MERGED = 200_000
"""Members that merge keys (`<<`) copy in a whole file."""


def document_of(path: Path) -> Any:
    """The file's JSON or YAML value; a list of the lines' values for JSON lines.

    ConfigError, worded as the end of a sentence, for what cannot be read.
    """
    data = _bytes(path)
    try:
        text = data.decode("utf-8-sig")
        if not text.strip():
            raise ConfigError("empty")
        if text.lstrip()[0] not in "[{":
            return _yaml(text)
        try:
            return json.loads(text)
        except json.JSONDecodeError as error:
            lines = [line for line in text.split("\n") if line.strip()]
            if len(lines) > 1 and error.msg == "Extra data":
                return [_line(number, line) for number, line in enumerate(lines, 1)]
            if path.name.removesuffix(".gz").endswith((".yaml", ".yml")):
                return _yaml(text)
            raise ConfigError(f"no JSON: {error}") from error
    except UnicodeDecodeError as error:
        raise ConfigError("no text in UTF-8") from error
    except RecursionError as error:
        raise ConfigError("nested too deep to be read") from error
    except ValueError as error:  # a number of more digits than Python reads
        raise ConfigError(f"no JSON that can be read: {error}") from error


def _bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            is_packed = file.read(2) == b"\x1f\x8b"
        with gzip.open(path) if is_packed else path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except (EOFError, zlib.error) as error:
        raise ConfigError(f"no whole gzip file: {error}") from error
    except OSError as error:
        raise ConfigError(f"not readable: {error.strerror or error}") from error
    if len(data) > MAX_FILE_BYTES:
        raise ConfigError(f"over {MAX_FILE_BYTES >> 20} MiB unpacked; split it")
    return data


def _line(number: int, line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError as error:
        raise ConfigError(f"JSON lines of which line {number} is no JSON: {error}") from error


def _yaml(text: str) -> Any:
    try:
        _refuse_deep(text)
        found = yaml.load(text, _Loader)  # a SafeLoader: plain values only
    except (yaml.YAMLError, AttributeError, LookupError, TypeError) as error:  # `!!bool maybe`
        said = " ".join(str(error).split())
        raise ConfigError(f"neither JSON nor YAML: {said[:200]}") from error
    nodes, stack = 0, [found]
    while stack:
        node = stack.pop()
        nodes += 1
        if nodes > MAX_YAML_NODES:
            raise ConfigError(f"YAML of over {MAX_YAML_NODES} values once aliases are written out")
        if isinstance(node, dict | list):
            stack.extend(node.values() if isinstance(node, dict) else node)
        elif not isinstance(node, str | int | float | None):  # !!binary, !!set, !!timestamp
            raise ConfigError(f"YAML with a {type(node).__name__} in it, which JSON has not")
    return found


def _refuse_deep(text: str) -> None:
    """Before anything is made of it: the C loader is recursive, and would take Python with it."""
    levels = 0
    for event in yaml.parse(text, _Loader):
        levels += isinstance(event, yaml.CollectionStartEvent)
        levels -= isinstance(event, yaml.CollectionEndEvent)
        if levels > MAX_YAML_DEPTH:
            raise ConfigError("nested too deep to be read")


class _Loader(yaml.CSafeLoader):
    """Dates stay text, as in JSON; keys such as 200 become text."""

    yaml_implicit_resolvers: ClassVar = {
        first: [one for one in resolvers if one[0] != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    merged = 0
    """Members that merge keys have copied so far."""

    def flatten_mapping(self, node: Any) -> None:
        """Merge keys multiply while they are read: counted before they are followed."""
        for key, value in node.value:
            if key.tag != "tag:yaml.org,2002:merge":
                continue
            for one in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                if isinstance(one, yaml.MappingNode):
                    self.flatten_mapping(one)
                    self.merged += len(one.value)
                if self.merged > MAX_YAML_MERGED:
                    raise yaml.YAMLError(f"merge keys that copy over {MAX_YAML_MERGED} members")
        super().flatten_mapping(node)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        found = super().construct_mapping(node, deep=deep)
        return {key if isinstance(key, str) else json.dumps(key): v for key, v in found.items()}
