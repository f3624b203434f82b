"""The final answer is said once, and a number is a number alone."""

import time
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth.gym.maths.answers import LONGEST_ANSWER, exact_number, final_answer, one_space


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("<answer>12</answer>", "12"),
        ("I think so.\n<ANSWER> 12 </ANSWER> Done.", "12"),
        ("<answer>\n1 2\n3 4\n</answer>", "1 2\n3 4"),
        (r"so \boxed{12}", "12"),
        (r"so \fbox{\frac{1}{2}}.", r"\frac{1}{2}"),
        (r"<answer>\boxed{12}</answer>", "12"),
        (r"<answer>$12$</answer>", "12"),
        (r"<answer>\(\boxed{x^{2}}\)</answer>", "x^{2}"),
        (r"\boxed{12}, so <answer>12</answer>", "12"),
        (r"\boxed{12} and again \boxed{12}", "12"),
        (r"\boxed{\{1,2\}}", r"\{1,2\}"),
        ("<answer>$3 to $5</answer>", "$3 to $5"),
    ],
)
def test_what_a_reply_gives(reply: str, text: str) -> None:
    assert final_answer(reply).text == text
    assert final_answer(reply).fault is None


@pytest.mark.parametrize(
    ("reply", "fault"),
    [
        ("", "no_answer"),
        ("12", "no_answer"),
        ("The answer is 12.", "no_answer"),
        ("<answer></answer>", "no_answer"),
        ("<answer> \n </answer>", "no_answer"),
        ("<answer>12", "no_answer"),
        ("12</answer>", "no_answer"),
        (r"\boxed{12", "no_answer"),
        (r"\boxed{}", "no_answer"),
        ("<answer>3</answer><answer>4</answer>", "several_answers"),
        ("\\boxed{3}" * 51, "several_answers"),
        (r"\boxed{3} or \boxed{4}", "several_answers"),
        (r"\boxed{3} but <answer>4</answer>", "several_answers"),
        (r"<answer>3</answer> <answer></answer>", "several_answers"),
        (f"<answer>{'1' * (LONGEST_ANSWER + 1)}</answer>", "too_long"),
    ],
)
def test_what_is_no_answer(reply: str, fault: str) -> None:
    assert final_answer(reply) == ("", fault)


@given(st.text(max_size=200))
def test_any_reply_is_read_and_a_fault_comes_without_a_text(reply: str) -> None:
    found = final_answer(reply)
    assert bool(found.text) == (found.fault is None)


@given(st.text(alphabet="<>/answer{}\\boxed$() \n1", max_size=60))
def test_pieces_of_marks_are_read_too(reply: str) -> None:
    found = final_answer(reply)
    assert bool(found.text) == (found.fault is None)


@pytest.mark.parametrize("piece", ["\\boxed{", "<answer>", "</answer>", "{", "\\boxed{1} "])
def test_marks_without_end_take_no_long_time(piece: str) -> None:
    start = time.process_time()
    final_answer(piece * 30_000)
    assert time.process_time() - start < 2


@given(st.fractions(), st.booleans())
def test_a_quotient_is_the_number_it_says(value: Fraction, in_latex: bool) -> None:
    sign = "-" if value < 0 else ""
    above, below = abs(value.numerator), value.denominator
    text = f"{sign}\\frac{{{above}}}{{{below}}}" if in_latex else f"{sign}{above}/{below}"
    assert exact_number(text) == value


@given(st.integers(-(10**30), 10**30))
def test_commas_between_thousands_and_zeros_behind_the_point_change_nothing(value: int) -> None:
    assert exact_number(f"{value:,}") == value
    assert exact_number(f"{value}.000") == value
    assert exact_number(f" {value} ") == value


@given(st.decimals(allow_nan=False, allow_infinity=False, places=6, min_value=-999, max_value=999))
def test_a_decimal_number_is_exact(value: object) -> None:
    assert exact_number(f"{value:f}") == Fraction(f"{value:f}")  # type: ignore[str-format]


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            " ",
            "twelve",
            "12 apples",
            "1 2",
            "1,2",
            "12,34",
            "1,2345",
            "0x10",
            "1e3",
            "inf",
            "nan",
        ),
        *(
            "1/0",
            "0/0",
            "1/2/3",
            "3 or 4",
            "3, 4",
            "2+2",
            "9**9",
            "--1",
            "+-1",
            "-\\frac{-1}{2}",
            ".",
        ),
        *("1" * 500, "\u0663", "\uff13", "1_000", "½", "True", "1.2.3", "\\frac{1}{2}3", "()", "-"),
    ],
)
def test_what_is_not_a_number_alone(text: str) -> None:
    assert exact_number(text) is None


@given(st.text(max_size=50))
def test_any_text_is_a_number_or_none(text: str) -> None:
    value = exact_number(text)
    assert value is None or isinstance(value, Fraction)


@given(st.text(max_size=80))
def test_space_is_evened_once(text: str) -> None:
    assert one_space(one_space(text)) == one_space(text)
