"""Repairs that an agent can think of: one small change of one line, of a few everyday kinds.

A statement that is missing altogether is not among them, so such mistakes stay.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from offline_llm.code.reading import Edit, Frame

_TURNS = {
    "boundary": {"<": "<=", "<=": "<", ">": ">=", ">=": ">"},
    "sense": {"==": "!=", "!=": "==", "<": ">", ">": "<", "<=": ">=", ">=": "<="},
}
_COMPARES = re.compile(r"(?<![<>=!-])(<=|>=|==|!=|<|>)(?![<>=])")
_NUMBER = re.compile(r"(?<![\w.\"'])(\d{1,6})(?![\w.\"'])")
_SIGN = re.compile(r"(?<=[\w)\]\"'] )(\+|-|\*|//|/|%)(?= [\w(\[\"'])")
_SIGNS = {"+": ("-", "*"), "-": ("+",), "*": ("/", "//"), "//": ("%", "/"), "/": ("//",)}
_SIGNS["%"] = ("//",)
_JOINS = re.compile(r"\b(and|or)\b")
_TRUTH = re.compile(r"\b(True|False)\b")
_MEMBER = re.compile(r"(?<=\w )(not in|in|is not|is)(?= \w)")
_MEMBERS = {"not in": "in", "in": "not in", "is not": "is", "is": "is not"}
_CONDITION = re.compile(r"\b(if|while|elif|and|or|return) (?!not\b)")
_NOT = re.compile(r"\bnot (?!in\b)")
_PAIR = re.compile(r"\(([^(),]+), ([^(),=]+)(?=[,)])")
_DEFINES = re.compile(r"^( *)(?:def|class) (\w+)")
_CALLED = re.compile(r"\b([A-Za-z_]\w*)\(")


class LineGuess(NamedTuple):
    """A line as it might have been meant."""

    rank: int
    line: str


def turns(line: str) -> Iterator[LineGuess]:
    """Other forms of a line, likelier kinds with a lower rank."""
    for match in _COMPARES.finditer(line):
        for rank, table in enumerate(_TURNS.values()):
            if other := table.get(match[1]):
                yield LineGuess(rank, _put(line, match.span(1), other))
    for match in _NUMBER.finditer(line):
        number = int(match[1])
        for other in (number - 1, number + 1, number // 10 if number >= 10 else -1):
            if other >= 0:
                yield LineGuess(1, _put(line, match.span(1), str(other)))
    for match in _SIGN.finditer(line):
        for other in _SIGNS.get(match[1], ()):
            yield LineGuess(1, _put(line, match.span(1), other))
    for match in _JOINS.finditer(line):
        yield LineGuess(1, _put(line, match.span(1), "or" if match[1] == "and" else "and"))
    for match in _TRUTH.finditer(line):
        yield LineGuess(1, _put(line, match.span(1), "False" if match[1] == "True" else "True"))
    if not line.lstrip().startswith("for "):
        for match in _MEMBER.finditer(line):
            yield LineGuess(1, _put(line, match.span(1), _MEMBERS[match[1]]))
    for match in _NOT.finditer(line):
        yield LineGuess(1, _put(line, match.span(), ""))
    for match in _PAIR.finditer(line):
        if not line.lstrip().startswith(("def ", "raise ")):
            yield LineGuess(2, _put(line, match.span(), f"({match[2]}, {match[1]}"))
    for match in _CONDITION.finditer(line):
        if match[1] != "return":
            yield LineGuess(2, _put(line, (match.end(), match.end()), "not "))


def _put(line: str, span: tuple[int, int], text: str) -> str:
    return line[: span[0]] + text + line[span[1] :]


def names_called(text: str) -> list[str]:
    """Names of functions and classes that a text calls, in order, each once."""
    return list(dict.fromkeys(_CALLED.findall(text)))


def functions_of(source: str) -> dict[str, range]:
    """Name -> numbers of the lines of each function or class; of several the last."""
    lines, found = source.split("\n"), {}
    for number, line in enumerate(lines, 1):
        if match := _DEFINES.match(line):
            end = number + 1
            while end <= len(lines) and (
                not lines[end - 1].strip() or lines[end - 1].startswith(match[1] + " ")
            ):
                end += 1
            found[match[2]] = range(number, end)
    return found


def repairs(files: dict[str, str], wanted: list[str], frames: tuple[Frame, ...]) -> list[Edit]:
    """Edits to try, the likeliest first: on lines of the failure's own trace, then in functions
    that the test calls, then in those that these call."""
    ranked: list[tuple[int, int, int, Edit]] = []
    traced = {(frame.path, frame.line + by) for frame in frames for by in (0, -1)}
    for path, source in files.items():
        lines, functions = source.split("\n"), functions_of(source)
        named = [functions[name] for name in wanted if name in functions]
        inner = [
            functions[name]
            for span in named
            for name in names_called("\n".join(lines[span.start : span.stop - 1]))
            if name in functions
        ]
        quiet = quoted_lines(lines)
        for number, line in enumerate(lines, 1):
            if (
                number in quiet
                or not line.strip()
                or line.lstrip().startswith(("#", "import", "from"))
            ):
                continue
            near = (
                0
                if (path, number) in traced
                else 1
                if any(number in span for span in named)
                else 2
                if any(number in span for span in inner)
                else 3
            )
            ranked += [
                (near, turn.rank, number, edit)
                for turn in turns(line)
                if (edit := _edit(path, lines, number, turn.line)) is not None
            ]
    ranked.sort(key=lambda entry: entry[:3])
    return list(dict.fromkeys(entry[3] for entry in ranked))


def quoted_lines(lines: list[str]) -> set[int]:
    """Numbers of the lines of docstrings."""
    found, inside = set(), False
    for number, line in enumerate(lines, 1):
        marks = line.count('"""')
        if inside or marks:
            found.add(number)
        if marks % 2:
            inside = not inside
    return found


def _edit(path: str, lines: list[str], number: int, new: str) -> Edit | None:
    """The line with as many lines before it as make it the only such place in the file."""
    text = "\n".join(lines)
    for before in range(4):
        start = max(0, number - 1 - before)
        old = "\n".join(lines[start:number])
        if text.count(old) == 1:
            return Edit(path, old, "\n".join([*lines[start : number - 1], new]))
    return None
