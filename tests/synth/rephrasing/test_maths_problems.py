"""The mathematics set: every answer is found again by other means, every equation checked."""

import json
import re
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import synth.rephrasing
from tests.synth.rephrasing.answers import ANSWERS
from tests.synth.rephrasing.latex_values import letters_of, sides, value

FILE = Path(synth.rephrasing.__file__).parent / "sources" / "maths" / "problems.jsonl"
PROBLEMS = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
TOPICS = frozenset(
    ["arithmetic", "algebra", "geometry", "combinatorics", "probability", "number_theory"]
) | {"calculus", "linear_algebra", "sequences", "logic"}
LANGUAGES = frozenset(["en", "de", "fr", "es", "it", "pt", "pl", "zh", "ja", "ru"])
POINTS = (0.3, 0.7, 1.3, 2.1)
"""Where functions are compared; all answers are defined there."""
FORMULA = re.compile(r"\$([^$]+)\$")
SIGNS_OF = {"ja": "[\u3040-\u30ff]", "zh": "[\u4e00-\u9fff]", "ru": "[\u0400-\u04ff]"}


def same(a: Any, b: Any) -> bool:
    """Exactly where both are exact, else to one in a million."""
    if isinstance(b, set | frozenset):
        return len(a) == len(b) and all(map(same, sorted(a), sorted(b)))
    if isinstance(b, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, Fraction) and isinstance(b, int | Fraction):
        return a == b
    return abs(float(a) - float(b)) <= 1e-6 * max(1.0, abs(float(b)))


def wrong_equations(text: str) -> tuple[int, list[str]]:
    """(equations between two values that could be worked out, those that do not hold)."""
    checked, wrong = 0, []
    for formula in FORMULA.findall(text):
        values = [worked_out(side) for side in sides(formula)]
        for a, b in pairwise(values):
            if a is not None and b is not None:
                checked += 1
                wrong += [] if same(a, b) else [formula]
    return checked, wrong


def worked_out(side: str) -> Any:
    """The value of a side without variables; None where it has some or is beyond the reader."""
    try:
        return value(side.strip().rstrip(",."))
    except (ValueError, IndexError, OverflowError):
        return None


def test_the_set_is_as_large_and_mixed_as_it_says() -> None:
    languages = Counter(row["language"] for row in PROBLEMS)
    assert len(PROBLEMS) >= 200
    assert languages.keys() == LANGUAGES
    assert min(languages.values()) >= 10
    assert len(PROBLEMS) - languages["en"] >= 60
    topics = Counter(row["topic"] for row in PROBLEMS)
    assert topics.keys() == TOPICS
    assert min(topics.values()) >= 15


def test_every_row_has_its_fields_and_its_own_id_and_problem() -> None:
    fields = ["id", "language", "topic", "problem", "solution", "answer"]
    assert all(list(row) == fields for row in PROBLEMS)
    assert all(row["id"].startswith(f"{row['topic']}-{row['language']}-") for row in PROBLEMS)
    for field in ("id", "problem", "solution"):
        assert len({row[field] for row in PROBLEMS}) == len(PROBLEMS)
    assert {row["id"] for row in PROBLEMS} == ANSWERS.keys()


@pytest.mark.parametrize("row", PROBLEMS, ids=[row["id"] for row in PROBLEMS])
def test_the_answer_is_found_again(row: dict[str, str]) -> None:
    formula = row["answer"].strip("$")
    found = ANSWERS[row["id"]]()
    if isinstance(found, Callable):
        for x in POINTS:
            assert same(value(formula, **dict.fromkeys(letters_of(formula), x)), found(x))
    else:
        assert same(value(formula), found)


@pytest.mark.parametrize("row", PROBLEMS, ids=[row["id"] for row in PROBLEMS])
def test_a_solution_works_in_steps_and_ends_in_the_answer(row: dict[str, str]) -> None:
    solution = row["solution"]
    assert row["answer"].strip("$") in solution
    assert len(FORMULA.findall(solution)) >= 3
    assert len(re.findall(r"[.\u3002](?=\s|$|\D)", FORMULA.sub("", solution))) >= 3
    assert solution.count("$") % 2 == row["problem"].count("$") % 2 == 0
    if signs := SIGNS_OF.get(row["language"]):
        assert re.search(signs, row["problem"])
        assert re.search(signs, solution)


def test_every_equation_between_numbers_holds() -> None:
    results = {row["id"]: wrong_equations(row["solution"]) for row in PROBLEMS}
    assert {name: wrong for name, (_, wrong) in results.items() if wrong} == {}
    assert sum(checked for checked, _ in results.values()) > 500, "the reader reads little of it"


def test_the_reader_of_formulas_is_not_fooled() -> None:
    assert value(r"\frac{2}{3}") == Fraction(2, 3)
    assert value(r"-2^2") == -4
    assert value(r"2\cdot 3!") == 12
    assert value(r"1{,}5") == Fraction(3, 2)
    assert value(r"\{-\frac{3}{2}; 5\}") == {Fraction(-3, 2), 5}
    assert value(r"(2, \frac{1}{2})") == (2, Fraction(1, 2))
    assert value(r"\begin{pmatrix} 2 & -5 \\ -1 & 3 \end{pmatrix}") == ((2, -5), (-1, 3))
    assert value("2(x + 1)x", x=Fraction(3)) == 24
    assert wrong_equations("so $2 + 2 = 5$ and $1 = 1$") == (2, ["2 + 2 = 5"])
    with pytest.raises(ValueError, match="no value for"):
        value("x + 1")
