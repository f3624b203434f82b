"""Label selectors mean what "Labels and Selectors" defines, whatever the labels."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kubernetes.double.errors import ApiError
from tests.kubernetes.double.rules.quantities import parse_quantity, written
from tests.kubernetes.double.selectors import parse_fields, parse_labels

KEYS = ["app", "tier", "example.com/size"]
VALUES = ["", "a", "b", "9", "10"]
LABELS = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES))
TERM = st.tuples(
    st.sampled_from(["=", "==", "!=", "in", "notin", "exists", "!"]),
    st.sampled_from(KEYS),
    st.lists(st.sampled_from(VALUES), min_size=1, max_size=3, unique=True),
)


def text_of(operator: str, key: str, values: list[str]) -> str:
    if operator in ("in", "notin"):
        return f"{key} {operator} ({', '.join(values)})"
    if operator == "exists":
        return key
    return f"!{key}" if operator == "!" else f"{key}{operator}{values[0]}"


def defined(operator: str, key: str, values: list[str], labels: dict[str, str]) -> bool:
    """The definition: negative operators hold where the label is missing."""
    if operator in ("=", "=="):
        return key in labels and labels[key] == values[0]
    if operator == "in":
        return key in labels and labels[key] in values
    if operator == "!=":
        return key not in labels or labels[key] != values[0]
    if operator == "notin":
        return key not in labels or labels[key] not in values
    return (key in labels) is (operator == "exists")


@given(st.lists(TERM, max_size=4), LABELS)
def test_a_selector_holds_where_all_its_terms_do(
    terms: list[tuple[str, str, list[str]]], labels: dict[str, str]
) -> None:
    parsed = parse_labels(",".join(text_of(*term) for term in terms))
    found = all(requirement.holds(labels) for requirement in parsed)
    assert found is all(defined(*term, labels) for term in terms)


@pytest.mark.parametrize(
    ("text", "labels", "holds"),
    [
        ("size>9", {"size": "10"}, True),
        ("size<9", {"size": "10"}, False),
        ("size>9", {"size": "large"}, False),
        ("size>9", {}, False),
    ],
)
def test_numbers_are_compared_as_numbers(text: str, labels: dict[str, str], holds: bool) -> None:
    assert all(r.holds(labels) for r in parse_labels(text)) is holds


@pytest.mark.parametrize("text", ["a in", "a=b=c", "-a", "a in (b", "a=/", "size>large", "a b"])
def test_what_is_no_selector_is_a_bad_request(text: str) -> None:
    with pytest.raises(ApiError) as refusal:
        parse_labels(text)
    assert refusal.value.code == 400


def test_fields_are_equal_or_not_and_known() -> None:
    known = frozenset({"metadata.name"})
    (same,), (other,) = (parse_fields(f"metadata.name{o}x", known, "pods") for o in ("=", "!="))
    assert (same.holds({"metadata.name": "x"}), other.holds({"metadata.name": "x"})) == (
        True,
        False,
    )
    with pytest.raises(ApiError, match=r"field label not supported: status\.colour"):
        parse_fields("status.colour=x", known, "pods")


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("100m", "0.1"),
        ("1Gi", "1073741824"),
        ("1.5", "1.5"),
        ("2k", "2000"),
        ("1e3", "1000"),
        (3, "3"),
    ],
)
def test_quantities_are_exact(text: str | int, number: str) -> None:
    assert str(parse_quantity(text).normalize()) == str(parse_quantity(number).normalize())
    assert parse_quantity(written(parse_quantity(text), str(text))) == parse_quantity(text)


@pytest.mark.parametrize("text", ["", "1GB", "one", "1 Gi", "--1"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="quantities must match"):
        parse_quantity(text)
