"""The index over a conversation's values finds what a comparison with each of them finds."""

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from synth.rubrics.reading.locales import CODES
from synth.rubrics.reading.readings import ValueReading, read
from synth.rubrics.statements.comparing import could_be, speaks_of
from synth.rubrics.statements.told_elsewhere import ToldElsewhere
from synth.rubrics.statements.value_index import ValueIndex, is_name

DAYS = st.dates().map(str) | st.datetimes().map(lambda m: m.isoformat(timespec="minutes"))
CLOCKS = st.times().map(lambda t: t.strftime("%H:%M"))
NAMES = st.sampled_from(["Blue Hours", "in_progress", "\u6797\u6cfd", "Zoe", "ab", "4 cups"])
NUMBERS = (
    st.integers(-3000, 3000)
    | st.floats(-1e4, 1e4).map(lambda n: round(n, 3))
    | st.sampled_from([0, 0.15, 2024, 7 * 24, float("inf"), float("nan"), 10**400, -(10**20)])
)
VALUES = st.lists(NUMBERS | DAYS | CLOCKS | NAMES | st.text(max_size=6), unique=True, max_size=12)


def spelled(value: Any) -> st.SearchStrategy[str]:
    """Ways of telling a value, some of them not quite right."""
    ways = [f"{value}", f"{value} euros", f"-{value}%", f"at {value}", f"{str(value)[:7]}"]
    if isinstance(value, float | int) and abs(value) < 1e6:
        ways += [f"{value:.2f}", f"{value + 1:.1f}", f"{value * 60:.0f} minutes"]
        ways += [f"{value:,.0f}", f"{value * 100}%", f"{value / 100}", f"{value / 7} weeks"]
    return st.sampled_from(ways)


@st.composite
def told(draw: st.DrawFn) -> tuple[list[Any], str]:
    """Values, and a text that tells some of them and others."""
    values = draw(VALUES)
    shown = draw(st.lists(NUMBERS | DAYS | CLOCKS | NAMES, max_size=3))
    chosen = draw(st.lists(st.sampled_from(values), max_size=4)) if values else []
    words = [draw(spelled(value)) for value in (*shown, *chosen)]
    more = ["3/9/2024", "5 March", "half past eight", "Tuesday", "the 5th", "two hundred and six"]
    words += draw(st.lists(st.sampled_from(more), max_size=2))
    return values, f"It is {', then '.join(words)}."


@given(told(), st.sampled_from(CODES))
@example(([10**400, 1], "It is 1."), "en")
@example(([float("inf"), 2.5], f"It is {'9' * 400}."), "en")
@example((["2024-05-03", "20:15"], "It is May 3 at 8:15 pm, in 2024."), "en")
@example(([2024], "It was in 24."), "en")
@example(([12.346], "It is 12.35."), "en")
@example((["\u6797\u6cfd"], "It is \u6797\u6cfd."), "en")
def test_the_index_finds_what_a_comparison_with_each_finds(
    case: tuple[list[Any], str], code: str
) -> None:
    values, text = case
    said = read(text, code)
    index = ValueIndex(dict.fromkeys(values), values)
    named = {v for v in values if is_name(v) and v.lower() in said.lower}
    assert set(index.named_in(said)) == named
    for reading in said.readings:
        one_by_one = {v for v in values if comparable(v) and speaks_of(reading, v)}
        assert set(index.told_by(reading)) == one_by_one
        possible = any(comparable(v) and could_be(reading, v) for v in values)
        assert index.may_hold(reading) == possible


def comparable(value: Any) -> bool:
    """Whether a float can hold a number: those of several hundred digits tell nothing."""
    return isinstance(value, str) or -(10**300) < value < 10**300 or abs(value) == float("inf")


@given(st.lists(st.integers(0, 400), max_size=6), st.integers(0, 2000), st.integers(0, 2))
def test_what_two_numbers_come_to_is_found_in_order(
    numbers: list[int], asked: int, decimals: int
) -> None:
    number = asked / 10**decimals
    said = ValueReading(0, 0, "number", "", numbers=(number,), decimals=decimals)
    step = (0.5 * 10.0**-decimals if decimals else 0.0) + 1e-9
    follows = any(
        abs(number - abs(result)) <= step
        for a in set(numbers)
        for b in set(numbers)
        for part in (a * b / 100,)
        for result in (a + b, a - b, a * b, a / (b or 1), part, a - part, a + part)
    )
    values = ValueIndex(dict.fromkeys(numbers), [])
    assert ToldElsewhere((), "en", values).reckons(said) == follows
