"""Whether an answer solves a puzzle: one function for each way in which answers are judged.

Each takes the answer, the library's solution and the facts that `kinds.py` asks for, and says yes
or no. None evaluates what a policy wrote.
"""

import ast
import json
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from math import gcd
from typing import Any

from synth.gym.maths.answers import exact_number, one_space
from synth.gym.maths.arithmetic import expression

Facts = Mapping[str, Any]

_HEXADECIMAL = re.compile(r"(-?)0x([0-9a-f]{1,64})")
_IN_LATEX = re.compile(r"(-?)\\[dt]?frac\{([0-9]{1,30})\}\{([0-9]{1,30})\}")
_QUOTIENT = re.compile(r"(-?)([0-9]{1,30})(?:/([0-9]{1,30}))?")
_TIMES = re.compile("[ \t]*(?:\N{MULTIPLICATION SIGN}|[*x]|" + r"\\times|\\cdot)[ \t]*")
_ROLE = re.compile(r"([a-z]+) is (?:an? )?([a-z]+)")
_BETWEEN_ROLES = re.compile(r",\s*and\s+|,\s*|\s+and\s+")


def _exact(answer: str, solution: str, facts: Facts) -> bool:
    return one_space(answer) == one_space(solution)


def _words(answer: str, solution: str, facts: Facts) -> bool:
    return one_space(answer).casefold().rstrip(".") == one_space(solution).casefold().rstrip(".")


def _number(answer: str, solution: str, facts: Facts) -> bool:
    right = exact_number(solution)
    return right is not None and exact_number(answer) == right


def _json(answer: str, solution: str, facts: Facts) -> bool:
    try:
        # As text, since 1 == 1.0 == True in Python.
        return json.dumps(json.loads(answer)) == json.dumps(json.loads(solution))
    except (ValueError, RecursionError):
        return False


def _list(answer: str, solution: str, facts: Facts) -> bool:
    """Of numbers in quotes or not; `30` and `30.0` are the same number."""
    right, given = _numbers(solution), _numbers(answer)
    return right is not None and given == right


def _numbers(text: str) -> list[Fraction] | None:
    values = _parsed(text)
    if not isinstance(values, list):
        return None
    numbers = [exact_number(str(v)) if isinstance(v, str | int | float) else None for v in values]
    return None if None in numbers else [number for number in numbers if number is not None]


def _parsed(text: str) -> Any:
    """The JSON or Python literal; None for neither."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def _hexadecimal(answer: str, solution: str, facts: Facts) -> bool:
    right, given = (_HEXADECIMAL.fullmatch(text.strip().lower()) for text in (solution, answer))
    if right is None or given is None:
        return False
    return _signed(right) == _signed(given)


def _signed(match: re.Match[str]) -> int:
    return int(match.group(1) + match.group(2), 16)


def _fraction(answer: str, solution: str, facts: Facts) -> bool:
    """In lowest terms, as it is asked for."""
    right, given = _quotient(solution), _quotient(answer)
    return given is not None and given == right and gcd(*given) == 1


def _quotient(text: str) -> tuple[int, int] | None:
    plain = text.strip().strip("$").replace(" ", "")
    match = _IN_LATEX.fullmatch(plain) or _QUOTIENT.fullmatch(plain)
    if match is None:
        return None
    sign, above, below = match.groups()
    return int(sign + above), int(below or 1)


def _factors(answer: str, solution: str, facts: Facts) -> bool:
    """In any order."""
    parts = _TIMES.split(answer.strip().strip("$"))
    if not all(re.fullmatch("[0-9]{1,30}", part) for part in parts):
        return False
    return sorted(int(part) for part in parts) == sorted(facts["factors"])


def _digits(answer: str, solution: str, facts: Facts) -> bool:
    """A grid: the digits of every line that has any, whatever is drawn between them."""
    if set(answer) - set("0123456789<>\N{LOGICAL AND}\N{LOGICAL OR}^v|+-_ \t\n"):
        return False
    lines = [[int(c) for c in line if c.isascii() and c.isdigit()] for line in answer.splitlines()]
    return [line for line in lines if line] == facts["solution"]


def _roles(answer: str, solution: str, facts: Facts) -> bool:
    """Every person once, with one role."""
    right, given = _said_roles(solution), _said_roles(answer)
    return given is not None and given == right


def _said_roles(text: str) -> list[tuple[str, str]] | None:
    said: list[tuple[str, str]] = []
    for part in _BETWEEN_ROLES.split(one_space(text).lower().rstrip(".")):
        match = _ROLE.fullmatch(part.strip())
        if match is None:
            return None
        said.append((match.group(1), match.group(2)))
    return sorted(said)


def _queens(answer: str, solution: str, facts: Facts) -> bool:
    """A board that keeps the queens it was given, where no two attack each other."""
    given = facts["puzzle"]
    board = [line.split() for line in answer.splitlines() if line.strip()]
    size = len(given)
    if [len(row) for row in board] != [size] * size:
        return False
    if any(cell not in ("_", "Q") for row in board for cell in row):
        return False
    queens = [(i, j) for i, row in enumerate(board) for j, cell in enumerate(row) if cell == "Q"]
    kept = all(
        board[i][j] == "Q"
        for i, row in enumerate(given)
        for j, cell in enumerate(row)
        if cell == "Q"
    )
    lines: tuple[Callable[[int, int], int], ...] = (
        lambda i, j: i,
        lambda i, j: j,
        lambda i, j: i + j,
        lambda i, j: i - j,
    )
    alone = all(len({line(i, j) for i, j in queens}) == size for line in lines)
    return kept and len(queens) == size and alone


def _make_24(answer: str, solution: str, facts: Facts) -> bool:
    return _makes(answer, facts["numbers"], 24)


def _make_target(answer: str, solution: str, facts: Facts) -> bool:
    return _makes(answer, facts["numbers"], facts["target"])


def _makes(answer: str, numbers: list[int], target: int) -> bool:
    """Of all the numbers, each once, and of no other."""
    made = expression(answer)
    return made is not None and made.value == target and sorted(made.numbers) == sorted(numbers)


CHECKS: Mapping[str, Callable[[str, str, Facts], bool]] = {
    "exact": _exact,
    "words": _words,
    "number": _number,
    "list": _list,
    "json": _json,
    "hexadecimal": _hexadecimal,
    "fraction": _fraction,
    "factors": _factors,
    "digits": _digits,
    "roles": _roles,
    "queens": _queens,
    "make_24": _make_24,
    "make_target": _make_target,
}
"""Name of a check -> the function, of the answer, the solution and the facts."""
