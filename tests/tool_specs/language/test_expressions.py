"""The grammar: trees and text agree, and any text at all gives a tree or one kind of error."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tool_specs.language.expressions import (
    MAX_CHARS,
    MAX_DEPTH,
    names_in,
    parse,
    parse_template,
    show,
)
from tool_specs.language.syntax.nodes import (
    Access,
    Binary,
    Call,
    Each,
    ListOf,
    Literal,
    Name,
    Node,
    Record,
    Unary,
)
from tool_specs.language.syntax.tokens import COMPARISONS, KEYWORDS, ExpressionError

identifiers = st.from_regex(r"[a-z][a-z0-9_]{0,5}", fullmatch=True).filter(
    lambda text: text not in KEYWORDS
)
literals = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**53) + 1, 2**53 - 1),
    st.floats(0.001, 1e9, allow_nan=False).map(lambda x: round(x, 3)),
    st.text(max_size=8),
).map(Literal)
operators = st.sampled_from([*COMPARISONS, "and", "or", "+", "-", "*", "/"])


def negated(operand: Node) -> Node:
    """As the parser reads it: a minus before a number is part of the number."""
    if isinstance(operand, Literal) and type(operand.value) in (int, float):
        return Literal(-operand.value)  # type: ignore[operator]
    return Unary("-", operand)


def larger(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    bases = inner.filter(lambda node: not isinstance(node, Literal))
    return st.one_of(
        st.builds(Binary, operators, inner, inner),
        st.builds(Unary, st.just("not"), inner),
        inner.map(negated),
        st.builds(Access, bases, identifiers),
        st.builds(Call, identifiers, st.lists(inner, max_size=3).map(tuple)),
        st.builds(ListOf, st.lists(inner, max_size=3).map(tuple)),
        st.builds(Each, inner, identifiers, inner, st.none() | inner),
        st.dictionaries(identifiers, inner, min_size=1, max_size=3).map(
            lambda members: Record(tuple(members), tuple(members.values()))
        ),
    )


trees = st.recursive(st.one_of(literals, identifiers.map(Name)), larger, max_leaves=12)


@given(trees)
def test_a_shown_tree_parses_back(tree: Node) -> None:
    text = show(tree)
    if len(text) < MAX_CHARS:
        assert parse(text) == tree


@given(st.one_of(st.text(max_size=60), st.text("()[]{}:'\"\\ .,+-*/<=>!andornotx1", max_size=60)))
def test_any_text_is_a_tree_or_an_expression_error(text: str) -> None:
    try:
        tree = parse(text)
    except ExpressionError as error:
        place = error.position
        tree = Literal(None)
    else:
        place = 0
    assert 0 <= place <= len(text)
    assert parse(show(tree)) == tree


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a or b and not c == d", "a or b and not c == d"),
        ("(a or b) and c", "(a or b) and c"),
        ("1 + 2 * 3 - -4", "1 + 2 * 3 - -4"),
        ("(1 + 2) * 3", "(1 + 2) * 3"),
        ("a - (b - c) - d", "a - (b - c) - d"),
        ("not (a and b)", "not (a and b)"),
        ("(a == b) == c", "(a == b) == c"),
        ("x in ['a', \"it's\"]", "x in ['a', 'it\\'s']"),
        ("count( rows ).x", "count(rows).x"),
        ("args.in", "args.in"),
        ("[x.a for x in (xs) if (x.b > 1)]", "[x.a for x in xs if x.b > 1]"),
        ("[if for if in for if for]", "[if for if in for if for]"),
        ("{'a': 1, in: {b: [2]}}.a", "{a: 1, in: {b: [2]}}.a"),
        ("x ends_with 'a' or y", "x ends_with 'a' or y"),
    ],
)
def test_precedence_and_spelling(text: str, shown: str) -> None:
    assert show(parse(text)) == shown


@pytest.mark.parametrize(
    ("text", "words", "position"),
    [
        ("", "expected a value", 0),
        ("a ==", "found 'the end'", 4),
        ("a = b", "write == to compare", 2),
        ("a && b", "write and", 2),
        ("a < b < c", "comparisons do not chain; join them with and", 6),
        ("a b", "expected an operator or the end, found 'b'", 2),
        ("count(a", "expected ')' after the last item", 7),
        ("(a", "expected ')' after the expression in parentheses", 2),
        ("a.", "expected a field name after '.'", 2),
        ("'open", "text that starts with ' does not end", 0),
        ("99999999999999999999", "is over 9007199254740991", 0),
        ("__import__('os')", None, 0),
        ("[x for 1 in xs]", "expected a name after 'for', found '1'", 7),
        ("[x for y of xs]", "expected 'in' after for y, found 'of'", 9),
        ("[x for y in xs, z]", "expected ']' after the list that the items are made of", 14),
        ("{a: 1, a: 2}", "'a' stands twice", 7),
        ("{}", "expected the name of a member, found }", 1),
        ("{'a b': 1}", "expected the name of a member, found 'a b'", 1),
        ("{a 1}", "expected ':' after the name a", 3),
        ("a; b", "unexpected ';'", 1),
        ("lambda: 1", "expected an operator or the end, found ':'", 6),
    ],
)
def test_errors_name_the_place_and_what_is_allowed(
    text: str, words: str | None, position: int
) -> None:
    if words is None:  # reads as a call of a function that evaluation does not know
        assert parse(text) == Call("__import__", (Literal("os"),))
        return
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    assert words in str(caught.value)
    assert caught.value.position == position


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000,
        "-" * 1999 + "1",
        "not " * 499 + "a",
        "[" * 200 + "]" * 200,
        "f(" * 400,
        "+".join("1" * 999),
        "a" + ".a" * 999,
        "(" * (MAX_DEPTH + 1) + "1" + ")" * (MAX_DEPTH + 1),
        "a" * (MAX_CHARS + 1),
    ],
)
def test_size_and_depth_are_bounded(text: str) -> None:
    with pytest.raises(ExpressionError):
        parse(text)


def test_names_are_bindings_and_not_fields_or_functions() -> None:
    assert names_in(parse("count(rows.x) + args.y > 0 and 'z' == z")) == {"rows", "args", "z"}


def test_a_template_is_texts_and_trees_in_turn() -> None:
    parts = parse_template("Order {order.id} is {order.status}.").parts
    assert [part if isinstance(part, str) else show(part) for part in parts] == [
        "Order ",
        "order.id",
        " is ",
        "order.status",
        ".",
    ]
    with pytest.raises(ExpressionError, match="without"):
        parse_template("broken {a")
