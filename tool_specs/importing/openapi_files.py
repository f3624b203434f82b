"""OpenAPI documents of several files as one: what relative references name is brought along.

Only JSON and YAML files inside the folder of the first one are read, links followed. A reference to
what cannot be brought along stays, relative to that folder, and whoever follows it is told why: it
costs the operations that need it.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from records.errors import ConfigError
from tool_specs.importing.documents import document_of

MAX_FILES = 500
"""Brought along for one document; references to more of them lead nowhere."""

FILES = "x-files"
"""Member of the document under which the other files stand, each by its path."""

SUFFIXES = (".json", ".yaml", ".yml")

_NAMED = frozenset(
    {
        "$defs", "definitions", "dependentSchemas", "headers", "parameters", "patternProperties",
        "properties", "requestBodies", "responses", "schemas",
    }
)  # fmt: skip
"""Members whose own members are named by the author, and are no keywords."""

_DATA = frozenset({"const", "default", "enum", "example", "examples"})
"""Keywords under which `$ref` is a name like any other."""


def with_files(document: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    """The document at `path`, itself where it is of one file. ConfigError where it is too deep."""
    bundle = _Bundle(path)
    try:
        whole = bundle.rewritten(document, "")
        while bundle.waiting:
            name = bundle.waiting.pop()
            bundle.files[name] = bundle.rewritten(bundle.files[name], name)
    except RecursionError as error:
        raise ConfigError("nested too deep to be read") from error
    return {**whole, FILES: bundle.files} if bundle.files else document


class _Bundle:
    def __init__(self, path: Path) -> None:
        self._first = path.name
        self._folder = path.parent
        self._unread: set[str] = set()
        self.files: dict[str, Any] = {}
        """Path within the folder -> what the file holds."""
        self.waiting: list[str] = []
        """Paths of files whose references are not rewritten yet."""

    def rewritten(self, node: Any, file: str, *, is_named: bool = False) -> Any:
        """The node of a file with its references as those of the whole."""
        if isinstance(node, list):
            return [self.rewritten(one, file) for one in node]
        if not isinstance(node, Mapping):
            return node
        found = {}
        for key, value in node.items():
            if key == "$ref" and isinstance(value, str):
                found[key] = self._reference(value, file)
            elif key in _DATA and not is_named:
                found[key] = value
            else:
                found[key] = self.rewritten(value, file, is_named=key in _NAMED and not is_named)
        return found

    def _reference(self, ref: str, file: str) -> str:
        try:
            parts = urlsplit(ref)
        except ValueError:  # no address at all
            return ref
        if parts.scheme or parts.netloc or parts.query:
            return ref
        if not parts.path:
            return _within(file, parts.fragment)
        target = os.path.normpath(Path(file).parent / unquote(parts.path))
        if self._is_there(target):
            return _within("" if target == self._first else target, parts.fragment)
        return f"{quote(target)}#{parts.fragment}"

    def _is_there(self, target: str) -> bool:
        """Whether the file is part of the whole, which it becomes by being asked for."""
        if target in self.files or target == self._first:
            return True
        if target in self._unread or not self._may_read(target):
            return False
        try:
            read = document_of(self._folder / target)
        except ConfigError:
            self._unread.add(target)
            return False
        if isinstance(read, Mapping):  # its address says nothing here: references are by place
            read = {key: value for key, value in read.items() if key != "$id"}
        self.files[target] = read
        self.waiting.append(target)
        return True

    def _may_read(self, target: str) -> bool:
        if len(self.files) >= MAX_FILES or not target.removesuffix(".gz").endswith(SUFFIXES):
            return False
        try:
            place = (self._folder / target).resolve()
            return place.is_relative_to(self._folder.resolve()) and place.is_file()
        except (OSError, ValueError, RuntimeError):  # a loop of links, a null byte
            return False


def _within(file: str, fragment: str) -> str:
    """A place of a file as one of the whole; the first file is called ""."""
    if not file:
        return f"#{fragment}"
    step = quote(file.replace("~", "~0").replace("/", "~1"), safe="~")
    return f"#/{FILES}/{step}{fragment}"
