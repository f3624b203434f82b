"""Expressions are worth what arithmetic says, and nothing that is written is ever executed."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth.gym.maths.arithmetic import expression


@st.composite
def sums(draw: st.DrawFn, depth: int = 3) -> tuple[str, Fraction, list[int]]:
    """(text, value, numbers), the value by the definition of each operation."""
    if depth == 0 or draw(st.booleans()):
        number = draw(st.integers(0, 99))
        return str(number), Fraction(number), [number]
    left, a, of_left = draw(sums(depth=depth - 1))
    right, b, of_right = draw(sums(depth=depth - 1))
    sign = draw(st.sampled_from("+-*/" if b else "+-*"))
    value = {"+": a + b, "-": a - b, "*": a * b, "/": a / b if b else a}[sign]
    return f"({left} {sign} {right})", value, of_left + of_right


@given(sums())
def test_a_value_is_exact_and_every_number_is_told(made: tuple[str, Fraction, list[int]]) -> None:
    text, value, numbers = made
    found = expression(text)
    assert found is not None
    assert found.value == value
    assert list(found.numbers) == numbers


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "()",
            "1/0",
            "1/(2-2)",
            "9**9**9",
            "2**3",
            "7//2",
            "-5+6",
            "+5",
            "1+",
            "(1",
            "1)",
            "1 2",
        ),
        *(
            "1.5+2",
            "1e9",
            "x+1",
            "0x10",
            "1j",
            "[1]",
            "1,2",
            "1 if 1 else 2",
            "True",
            "24=24",
            "007+1",
        ),
        *(
            "__import__('os').system('true')",
            "(lambda: 1)()",
            "1+1;1",
            "1\n+1",
        ),
        *("factorial(4)", "4!", "sqrt(16)", "²", "\uff11+\uff11", "1+1" * 200),
    ],
)
def test_what_is_no_expression(text: str) -> None:
    assert expression(text) is None


@given(st.text(max_size=60))
def test_any_text_is_an_expression_or_none(text: str) -> None:
    found = expression(text)
    assert found is None or isinstance(found.value, Fraction)


@given(st.text(alphabet="0123456789+-*/() ", max_size=60))
def test_any_signs_are_an_expression_or_none(text: str) -> None:
    found = expression(text)
    assert found is None or all(str(number) in text for number in found.numbers)
