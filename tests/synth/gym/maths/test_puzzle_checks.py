# ruff: noqa: RUF001
"""What solves a puzzle, what does not, and what only looks as if it did."""

from typing import Any

import pytest

from synth.gym.maths.kinds import KINDS, LEFT_OUT
from synth.gym.maths.puzzle_checks import CHECKS

BOARD = [["_", "Q", "_", "_"], ["_", "_", "_", "_"], ["Q", "_", "_", "_"], ["_", "_", "_", "_"]]
QUEENS = "_ Q _ _\n_ _ _ Q\nQ _ _ _\n_ _ Q _"
GRID = [[1, 2], [2, 1]]
TWO = "Lily is an egoist, and Logan is an altruist."

RIGHT: list[tuple[str, str, str, dict[str, Any]]] = [
    ("exact", "A  B\n C", "A B\nC", {}),
    ("exact", "\nA B\n\nC ", "A B\nC", {}),
    ("words", "TRUE", "True", {}),
    ("words", "Grandfather.", "grandfather", {}),
    ("number", "1,024", "1024", {}),
    ("number", "1024.0", "1024", {}),
    ("number", "-3/4", "-0.75", {}),
    ("json", "[[0, 1],[1,0]]", "[[0,1],[1,0]]", {}),
    ("list", "['30', '-2.50']", "['30.0', '-2.5']", {}),
    ("list", '["30", "-2.5"]', "['30.0', '-2.5']", {}),
    ("list", "[30, -2.5]", "['30.0', '-2.5']", {}),
    ("hexadecimal", "-0X0ff", "-0xff", {}),
    ("fraction", "332/971", r"$\dfrac{332}{971}$", {}),
    ("fraction", r"\frac{332}{971}", r"$\dfrac{332}{971}$", {}),
    ("fraction", "5", "$5/1$", {}),
    ("factors", "37 × 3 × 3", "3 × 3 × 37", {"factors": [3, 3, 37]}),
    ("factors", "3*3*37", "3 × 3 × 37", {"factors": [3, 3, 37]}),
    ("factors", r"3 \times 3 \cdot 37", "3 × 3 × 37", {"factors": [3, 3, 37]}),
    ("digits", "1 2\n2 1", "1 2\n2 1", {"solution": GRID}),
    ("digits", "| 1 < 2 |\n  ∧   ∨\n| 2 | 1 |", "1 2\n2 1", {"solution": GRID}),
    ("roles", "Logan is an altruist and Lily is an egoist", TWO, {}),
    ("roles", "lily is a egoist, logan is a altruist", TWO, {}),
    ("queens", QUEENS, QUEENS, {"puzzle": BOARD}),
    ("make_24", "(7 - 1) * (8 - 4)", "", {"numbers": [7, 1, 8, 4]}),
    ("make_24", "8 / (3 - 8/3)", "", {"numbers": [3, 3, 8, 8]}),
    ("make_target", "100 + 3 - 3", "", {"numbers": [3, 100, 3], "target": 100}),
]

WRONG: list[tuple[str, str, str, dict[str, Any]]] = [
    ("exact", "a b", "A B", {}),
    ("exact", "A B\nC\nD", "A B\nC", {}),
    ("exact", "A B C", "A B\nC", {}),
    ("exact", "The answer is A B", "A B", {}),
    ("words", "true or false", "True", {}),
    ("words", "not true", "True", {}),
    ("words", "maybe", "True", {}),
    ("words", "False", "True", {}),
    ("number", "1025", "1024", {}),
    ("number", "1024 or 1025", "1024", {}),
    ("number", "1000+24", "1024", {}),
    ("number", "2**10", "1024", {}),
    ("number", "about 1024", "1024", {}),
    ("number", "1024.0001", "1024", {}),
    ("json", "[[0,1],[1,1]]", "[[0,1],[1,0]]", {}),
    ("json", "[[false,true],[true,false]]", "[[0,1],[1,0]]", {}),
    ("json", "[[0,1]]", "[[0,1],[1,0]]", {}),
    ("json", "null", "[[0,1],[1,0]]", {}),
    ("json", "[[0,1],[1,0]] or [[1,1],[1,0]]", "[[0,1],[1,0]]", {}),
    ("list", "['30', '-2']", "['30.0', '-2.5']", {}),
    ("list", "['-2.5', '30']", "['30.0', '-2.5']", {}),
    ("list", "['30.4', '-2.9']", "['30.0', '-2.5']", {}),
    ("list", "['30', '-2.5', '-2.5']", "['30.0', '-2.5']", {}),
    ("list", "[True, '-2.5']", "['1', '-2.5']", {}),
    ("list", "sorted(['30', '-2.5'])", "['30.0', '-2.5']", {}),
    ("list", "[nan, nan]", "['30.0', '-2.5']", {}),
    ("hexadecimal", "0xff", "-0xff", {}),
    ("hexadecimal", "255", "0xff", {}),
    ("hexadecimal", "0xfg", "0xff", {}),
    ("hexadecimal", "(0xf0 + 0xf)", "0xff", {}),
    ("fraction", "664/1942", r"$\dfrac{332}{971}$", {}),
    ("fraction", "0.3419", r"$\dfrac{332}{971}$", {}),
    ("fraction", "971/332", r"$\dfrac{332}{971}$", {}),
    ("fraction", "1/0", r"$\dfrac{332}{971}$", {}),
    ("fraction", "-332/971", r"$\dfrac{332}{971}$", {}),
    ("factors", "333", "3 × 3 × 37", {"factors": [3, 3, 37]}),
    ("factors", "9 × 37", "3 × 3 × 37", {"factors": [3, 3, 37]}),
    ("factors", "1 × 3 × 3 × 37", "3 × 3 × 37", {"factors": [3, 3, 37]}),
    ("factors", "3^2 × 37", "3 × 3 × 37", {"factors": [3, 3, 37]}),
    ("factors", "", "3 × 3 × 37", {"factors": [3, 3, 37]}),
    ("digits", "1 2\n1 2", "1 2\n2 1", {"solution": GRID}),
    ("digits", "1 2\n2 1\n1 2", "1 2\n2 1", {"solution": GRID}),
    ("digits", "_ 2\n2 1", "1 2\n2 1", {"solution": GRID}),
    ("digits", "row 1: 1 2\nrow 2: 2 1", "1 2\n2 1", {"solution": GRID}),
    ("digits", "12 21", "1 2\n2 1", {"solution": GRID}),
    ("roles", "Lily is an altruist, and Logan is an egoist.", TWO, {}),
    ("roles", "Lily is an egoist", TWO, {}),
    ("roles", TWO + " Lily is an altruist, and Logan is an altruist.", TWO, {}),
    ("roles", "Lily is an egoist altruist, and Logan is an altruist egoist", TWO, {}),
    ("roles", "Lily is an egoist, and Lily is an altruist, and Logan is an altruist", TWO, {}),
    ("roles", "Lily is not an altruist, and Logan is an altruist", TWO, {}),
    ("queens", QUEENS.replace("Q _ _ _", "_ _ _ _"), QUEENS, {"puzzle": BOARD}),
    ("queens", "_ _ Q _\nQ _ _ _\n_ _ _ Q\n_ Q _ _", QUEENS, {"puzzle": BOARD}),
    ("queens", "Q Q Q Q\n" * 4, QUEENS, {"puzzle": BOARD}),
    ("queens", "_ Q _ _\n_ _ _ Q\nQ _ _ _", QUEENS, {"puzzle": BOARD}),
    ("queens", f"{[list(line) for line in QUEENS.splitlines()]}", QUEENS, {"puzzle": BOARD}),
    ("make_24", "6 * 4 * 1 * 1", "", {"numbers": [7, 1, 8, 4]}),
    ("make_24", "24", "", {"numbers": [7, 1, 8, 4]}),
    ("make_24", "7 * 4 - 8 / 2 * 1", "", {"numbers": [7, 1, 8, 4]}),
    ("make_24", "8 * 4 - 7 - 1", "", {"numbers": [7, 1, 8, 4, 4]}),
    ("make_24", "8 * 4 - 7 - 1 = 24", "", {"numbers": [7, 1, 8, 4]}),
    ("make_24", "8 * 3 + 1 / 3 * 1", "", {"numbers": [8, 3, 1, 3]}),
    ("make_24", "71 - 48 + 1 * 1", "", {"numbers": [7, 1, 8, 4]}),
    ("make_target", "100", "", {"numbers": [3, 100, 3], "target": 100}),
    ("make_target", "100 + 3 * 0 + 3", "", {"numbers": [3, 100, 3], "target": 100}),
    ("make_target", "100 * 3 / 3 + 3 - 3", "", {"numbers": [3, 100, 3], "target": 100}),
]

HOSTILE = (
    *("", " ", "\n", "None", "nan", "inf", "[]", "{}", "()", "[[", "\x00", "1e999", "🙂", "_"),
    "__import__('os').system('true')",
    "[].__class__.__base__.__subclasses__()",
    "9**9**9",
    "(" * 5000,
    "[" * 5000 + "]" * 5000,
    "1" * 20_000,
    "a" * 20_000,
    "'" * 999,
)


@pytest.mark.parametrize(("check", "answer", "solution", "facts"), RIGHT)
def test_what_solves_a_puzzle(
    check: str, answer: str, solution: str, facts: dict[str, Any]
) -> None:
    assert CHECKS[check](answer, solution, facts)


@pytest.mark.parametrize(("check", "answer", "solution", "facts"), WRONG)
def test_what_does_not(check: str, answer: str, solution: str, facts: dict[str, Any]) -> None:
    assert not CHECKS[check](answer, solution, facts)


@pytest.mark.parametrize("check", CHECKS)
def test_no_text_is_executed_or_breaks_a_check(check: str) -> None:
    _, _, solution, facts = next(case for case in RIGHT if case[0] == check)
    for answer in HOSTILE:
        assert CHECKS[check](answer, solution, facts) is False, answer[:40]


def test_every_kind_is_checked_in_a_way_that_exists_and_every_way_is_used() -> None:
    assert {kind.check for kind in KINDS.values()} == {*CHECKS, "library"}
    assert all(kind.scored for kind in KINDS.values() if kind.check == "library")


def test_a_kind_is_used_or_left_out() -> None:
    assert not KINDS.keys() & LEFT_OUT.keys()
