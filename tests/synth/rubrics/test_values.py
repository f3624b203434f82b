"""When a text mentions a value: numbers, dates, times, ids and words in the ways people write."""

from datetime import date, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth.rubrics.built_in import mentions, same_value

WITHIN = "Sure: {}, as you asked."
amounts = st.integers(-(10**9), 10**9).map(lambda cents: cents / 100)
days = st.dates(date(1950, 1, 1), date(2060, 12, 31))
ids = st.from_regex(r"[A-Z]{2,3}-[0-9]{4}", fullmatch=True)


@settings(deadline=None)
@given(amounts)
def test_a_number_is_found_in_every_spelling(value: float) -> None:
    spellings = [
        f"{value:,.2f}",
        f"{value:.2f}",
        str(value),
        f"**{value:,.2f}**",
        f"{value:.2f} USD",
    ]
    if value >= 0:
        spellings.append(f"${value:,.2f}")
    assert all(mentions(WITHIN.format(text), value) for text in spellings)


@settings(deadline=None)
@given(amounts, amounts)
def test_another_number_is_not_found(value: float, other: float) -> None:
    if abs(value - other) >= 0.01:
        assert not mentions(f"Total {value:,.2f}.", other)


@settings(deadline=None)
@given(days)
def test_a_date_is_found_in_every_spelling(day: date) -> None:
    month, short = day.strftime("%B"), day.strftime("%b")
    spellings = [
        day.isoformat(),
        f"{month} {day.day}, {day.year}",
        f"{short}. {day.day}, {day.year}",
        f"{day:%A}, {month} {day.day}",
        f"{day.day} {month} {day.year}",
        f"the {day.day}th of {month} {day.year}",
        f"{day:%m/%d/%Y}",
    ]
    assert [s for s in spellings if not mentions(WITHIN.format(s), day.isoformat())] == []


@settings(deadline=None)
@given(days, days)
def test_another_date_is_not_found(day: date, other: date) -> None:
    if day != other:
        assert not mentions(f"On {day:%B} {day.day}, {day.year}.", other.isoformat())


@settings(deadline=None)
@given(st.datetimes(datetime(1950, 1, 1), datetime(2060, 1, 1)))
def test_a_moment_is_found_with_its_time_and_not_without(moment: datetime) -> None:
    value = moment.replace(second=0, microsecond=0).isoformat()
    day = f"{moment:%B} {moment.day}, {moment.year}"
    for time in (f"{moment:%H:%M}", f"{moment:%I:%M %p}".lstrip("0"), f"{moment:%I:%M} p.m."):
        if time.endswith("p.m.") and moment.hour < 12:
            continue
        assert mentions(f"It starts on {day} at {time}.", value)
    assert mentions(f"It starts {value}.", value)
    assert not mentions(f"It starts on {day}.", value)


@settings(deadline=None)
@given(ids, ids)
def test_an_id_is_found_as_a_whole_only(value: str, other: str) -> None:
    assert mentions(f"Your number is **{value}**.", value)
    assert not mentions(f"Your number is {value}7.", value)
    assert mentions(f"Your number is {value}.", other) == (value == other)
    assert not mentions(f"Your number is {value}.", int(value[-4:]))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("It is now in progress.", "in_progress"),
        ("Booked with dr. Ana\nMoreno", "Dr. Ana Moreno"),
        ("You have three visits left", 3),
        ("That is 15% off", 0.15),
        ("About 33.33 a month", 100 / 3),
        ("Done at 2 PM on 4 March", "2026-03-04T14:00:00"),
        ("The 5pm slot of Sept 3", "2026-09-03T17:00"),
        ("balance is -40.5", -40.5),
        ("It is 2026-03-07T00:15:00+05:45 there", "+05:45"),
    ],
)
def test_spellings_that_count(text: str, value: str | float) -> None:
    assert mentions(text, value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Order ORD-12 is on its way", 12),
        ("on 2026-03-04", 4),
        ("version 1.2.3", 1.2),
        ("commit 7f3a9c", 7),
        ("Done at 2 AM on 4 March", "2026-03-04T14:00:00"),
        ("March 4, 2027", "2026-03-04"),
        ("It was unbooked", "booked"),
        ("33.3", 100 / 3),
        ("", "x"),
        ("anything", ""),
    ],
)
def test_spellings_that_do_not_count(text: str, value: str | float) -> None:
    assert not mentions(text, value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@settings(deadline=None)
@given(json_values)
def test_a_value_is_the_same_as_itself(value: object) -> None:
    assert same_value(value, value)


@settings(deadline=None)
@given(st.lists(st.integers(), min_size=1), st.randoms())
def test_bags_ignore_order_and_nothing_else(values: list[int], random: object) -> None:
    shuffled = sorted(values, key=lambda _: random.random())  # type: ignore[attr-defined]
    assert same_value(values, shuffled, ordered=False)
    assert not same_value(values, [*shuffled, values[0]], ordered=False)


def test_numbers_by_value_text_by_words_booleans_by_kind() -> None:
    assert same_value({"a": 1}, {"a": 1.0})
    assert same_value("Call me  back.", "call me back")
    assert not same_value(True, 1)
    assert not same_value(None, 0)
    assert not same_value("1", 1)
