"""Texts that every machine has: CPython's own documentation, and the project's mathematics."""

import ast
import inspect
import json
import sysconfig
from collections.abc import Iterator
from functools import cached_property, lru_cache
from pathlib import Path
from threading import Lock

from synth.rephrasing.sources.texts import SourceText, TextPosition

FEWEST_CHARS = 400
"""Of a module's docstrings together; what is shorter teaches little."""

_NOT_DOCUMENTED = frozenset({"test", "tests", "idlelib", "lib2to3", "turtledemo", "site-packages"})
"""Folders of the standard library that are no part of what it documents."""


class CPython:
    """The topics of the language reference, then the docstrings of each module."""

    license = "PSF-2.0"

    def bytes_read(self) -> None:
        """Small enough that nobody asks."""

    def texts(self) -> Iterator[tuple[TextPosition, SourceText]]:
        for number, (name, text) in enumerate(self._topics):
            yield (0, number), SourceText(text, f"pydoc_data.topics:{name}", "en")
        for number, file in enumerate(self._modules):
            if len(text := _docstrings(file)) >= FEWEST_CHARS:
                yield (1, number), SourceText(text, _module_name(file), "en")

    def read(self, place: TextPosition) -> SourceText:
        part, number = place
        if part == 0:
            name, text = self._topics[number]
            return SourceText(text, f"pydoc_data.topics:{name}", "en")
        file = self._modules[number]
        return SourceText(_docstrings(file), _module_name(file), "en")

    @cached_property
    def _topics(self) -> list[tuple[str, str]]:
        from pydoc_data.topics import topics  # half a megabyte

        return sorted(topics.items())

    @cached_property
    def _modules(self) -> list[Path]:
        root = _library()
        files = (path for path in root.rglob("*.py") if path.name.isascii())
        inner = ((path, path.relative_to(root).parts) for path in files)
        return sorted(path for path, parts in inner if not _NOT_DOCUMENTED & set(parts))


_MATHS = Path(__file__).parent / "maths" / "problems.jsonl"


def _library() -> Path:
    return Path(sysconfig.get_path("stdlib"))


def _module_name(file: Path) -> str:
    parts = file.relative_to(_library()).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


_PARSING = Lock()
"""A module's texts are asked for together, from several threads: one of them parses it."""


def _docstrings(file: Path) -> str:
    with _PARSING:
        return _parsed(file)


@lru_cache(maxsize=256)
def _parsed(file: Path) -> str:
    """What a module says of itself and of its public classes and functions, each with a heading;
    read from the file, nothing of it runs."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):  # templates and files for other versions
        return ""
    said = [f"# {_module_name(file)}"]
    if own := ast.get_docstring(tree):
        said.append(own)
    said += _members(tree, "")
    return "\n\n".join(said) if len(said) > 1 else ""


def _members(tree: ast.Module | ast.ClassDef, inside: str) -> list[str]:
    said: list[str] = []
    for node in tree.body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if node.name.startswith("_"):
            continue
        name = f"{inside}{node.name}"
        if own := ast.get_docstring(node):
            said += [f"## {name}", inspect.cleandoc(own)]
        if isinstance(node, ast.ClassDef):
            said += _members(node, f"{name}.")
    return said


class MathsProblems:
    """Problems of the project's own, each with its solution and answer."""

    license = "Apache-2.0"

    def bytes_read(self) -> None:
        """Small enough that nobody asks."""

    def texts(self) -> Iterator[tuple[TextPosition, SourceText]]:
        for number in range(len(self._rows)):
            yield (0, number), self.read((0, number))

    def read(self, place: TextPosition) -> SourceText:
        row = self._rows[place[1]]
        text = f"{row['problem']}\n\n{row['solution']}\n\n{row['answer']}"
        return SourceText(text, f"maths:{row['id']}", row["language"], row["answer"])

    @cached_property
    def _rows(self) -> list[dict[str, str]]:
        lines = _MATHS.read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]
