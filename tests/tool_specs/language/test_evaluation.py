"""Meaning and types: compiled closures agree with a slow evaluator that knows only the rules."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tool_specs.execution.state import State
from tool_specs.language.evaluation import ARGS, FIRST_FREE, Scope, compile_expression
from tool_specs.language.expressions import parse, show
from tool_specs.language.syntax.nodes import (
    Access,
    Binary,
    Each,
    ListOf,
    Literal,
    Name,
    Node,
    Record,
    Unary,
)
from tool_specs.language.syntax.tokens import ExpressionError
from tool_specs.language.types import INTEGER, NUMBER, STRING, Type, json_schema, list_of, nullable
from tool_specs.language.values import EvaluationError

ROW = Type(
    "row",
    entity="pump",
    fields={
        "pump_id": STRING,
        "state": Type("enum", values=("on", "off")),
        "rate": NUMBER,
        "starts": nullable(INTEGER),
        "since": nullable(Type("date")),
        "tags": list_of(STRING),
    },
)
PUMP = {"pump_id": "P1", "state": "on", "rate": 2.5, "starts": None, "since": None, "tags": ["Old"]}
ARGS_TYPE = Type(
    "object", fields={"n": INTEGER, "text": nullable(STRING), "any": Type("any", True)}
)
SCOPE = Scope(
    names={
        "args": (ARGS, ARGS_TYPE),
        "pump": (FIRST_FREE, ROW),
        "pumps": (FIRST_FREE + 1, list_of(ROW)),
    },
    entities={"pump": ROW},
)


def evaluate(text: str, **args: Any) -> Any:
    env = [
        {"n": 3, "text": None, "any": None} | args,
        State.of({"pump": {"P1": PUMP}}, "2026-03-02T09:00:00"),
        1000,
    ]
    second = PUMP | {"pump_id": "P2", "rate": 4, "since": "2026-02-01"}
    return compile_expression(parse(text), SCOPE).run([*env, PUMP, [PUMP, second]])


class WrongError(Exception):
    """The reference evaluator refuses."""


def reference(node: Node, names: dict[str, Any]) -> Any:
    """The rules, written out without types, closures or speed."""
    match node:
        case Literal(value=value):
            return value
        case Access(base=Name(name="args"), field=field):
            return names[field]
        case Unary(operator="not", operand=operand):
            return not reference(operand, names)
        case Unary(operand=operand):
            return -_number(reference(operand, names))
        case Binary(operator="and", left=left, right=right):
            return reference(left, names) and reference(right, names)
        case Binary(operator="or", left=left, right=right):
            return reference(left, names) or reference(right, names)
        case Binary(operator=sign, left=left, right=right):
            return _binary(sign, reference(left, names), reference(right, names))
    raise AssertionError(node)


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise WrongError
    return value


def _binary(sign: str, a: Any, b: Any) -> Any:
    if sign in "+-*/":
        a, b = _number(a), _number(b)
        if sign == "/" and b == 0:
            raise WrongError
        result = {"+": a + b, "-": a - b, "*": a * b, "/": sign == "/" and a / b}[sign]
        if not math.isfinite(result) or abs(result) >= 2**53:
            raise WrongError
        return int(result) if result == int(result) else result
    if sign in ("==", "!="):
        same = type(a) is type(b) if isinstance(a, bool) or isinstance(b, bool) else True
        return (same and a == b) == (sign == "==")
    if a is None or b is None:
        return False
    if sign == "contains":
        return b.lower() in a.lower()
    if sign == "starts_with":
        return a.lower().startswith(b.lower())
    return {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[sign]


numbers = st.recursive(
    st.one_of(
        st.integers(-9, 9).map(Literal),
        st.floats(-9, 9, allow_nan=False).map(lambda x: Literal(round(x, 2))),
        st.just(Access(Name("args"), "n")),
    ),
    lambda inner: st.one_of(
        st.builds(Binary, st.sampled_from("+-*/"), inner, inner),
        st.builds(Unary, st.just("-"), inner),
    ),
    max_leaves=8,
)
texts = st.one_of(
    st.text("abAB ", max_size=3).map(Literal),
    st.just(Access(Name("args"), "text")),
    st.just(Literal(None)),
)
anything = st.one_of(
    numbers, texts, st.booleans().map(Literal), st.just(Access(Name("args"), "any"))
)
conditions = st.recursive(
    st.one_of(
        st.booleans().map(Literal),
        st.builds(Binary, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), numbers, numbers),
        st.builds(Binary, st.sampled_from(["contains", "starts_with", "<", ">="]), texts, texts),
        st.builds(Binary, st.sampled_from(["==", "!="]), anything, anything),
    ),
    lambda inner: st.one_of(
        st.builds(Binary, st.sampled_from(["and", "or"]), inner, inner),
        st.builds(Unary, st.just("not"), inner),
    ),
    max_leaves=5,
)


@given(
    st.one_of(numbers, conditions),
    st.integers(-5, 5),
    st.one_of(st.none(), st.text("abAB", max_size=3)),
    st.one_of(st.none(), st.booleans(), st.integers(0, 1), st.just("a")),
)
def test_closures_agree_with_the_reference(
    tree: Node, n: int, text: str | None, value: Any
) -> None:
    names = {"n": n, "text": text, "any": value}
    try:
        run = compile_expression(tree, SCOPE).run
    except ExpressionError:
        return  # refused by its types, such as 1 == 'a'
    try:
        expected = reference(tree, names)
    except WrongError:
        with pytest.raises(EvaluationError):
            run([names, None, 0])
        return
    found = run([names, None, 0])
    assert found == expected
    assert isinstance(found, bool) == isinstance(expected, bool)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("6 / 2", 3),
        ("7 / 2", 3.5),
        ("round(2.5)", 3),
        ("round(-2.5)", -3),
        ("round(1.005, 2)", 1.01),
        ("round(pump.starts)", None),
        ("args.any == 1", False),
        ("pump.starts == null", True),
        ("pump.starts < 3", False),
        ("pump.since <= '2026-01-01'", False),
        ("pump.tags contains 'old'", True),
        ("'Old' in pump.tags", True),
        ("'old' in pump.tags", False),
        ("'North Pier' contains 'pier'", True),
        ("'North' starts_with 'no'", True),
        ("args.text contains 'x'", False),
        ("coalesce(args.text, pump.starts, 'none')", "none"),
        ("concat('P', 1, ' ', 2.5, ' ', null, true)", "P1 2.5 true"),
        ("date(now())", "2026-03-02"),
        ("days_between('2026-03-01', now())", 1),
        ("minutes_between('2026-03-02T08:15:00', now())", 45),
        ("minutes_between(pump.since, now())", None),
        ("add_minutes(now(), -90)", "2026-03-02T07:30:00"),
        ("average(pumps.rate)", 3.25),
        ("average(pumps.starts)", None),
        ("first(pumps).pump_id", "P1"),
        ("first(pumps.since)", "2026-02-01"),
        ("distinct(pumps.state)", ["on"]),
        ("tally(pumps.state)", [{"value": "on", "count": 2}]),
        ("if(pump.rate > 2, 'fast', 'slow')", "fast"),
        ("if(pump.rate > 0, 1, 1 / 0)", 1),
        ("pick(pump, 'state', 'rate')", {"state": "on", "rate": 2.5}),
        ("pick(pumps, 'pump_id')", [{"pump_id": "P1"}, {"pump_id": "P2"}]),
        ("days_between(now(), pump.since)", None),
        ("add_days(date(now()), -2)", "2026-02-28"),
        ("add_days(now(), 30)", "2026-04-01T09:00:00"),
        ("count(pumps)", 2),
        ("sum(pumps.rate)", 6.5),
        ("sum(pumps.starts)", 0),
        ("min(pumps.since)", "2026-02-01"),
        ("max(pumps.starts)", None),
        ("max(1, args.n, 2)", 3),
        ("exists(pumps)", True),
        ("exists([])", False),
        ("exists(lookup('pump', 'P1'))", True),
        ("exists(lookup('pump', 'P9'))", False),
        ("lookup('pump', 'P1').rate", 2.5),
        ("lookup('pump', 'P9').rate", None),
        ("date(lookup('pump', 'P9').since) == date(now())", False),
        ("pumps.tags", [["Old"], ["Old"]]),
        ("'North Pier' ends_with 'PIER'", True),
        ("args.text ends_with 'x'", False),
        ("lower('ÀB c')", "àb c"),
        ("upper(pump.state)", "ON"),
        ("title('they\\'re  mcADAM')", "They're  Mcadam"),
        ("trim('  a b ')", "a b"),
        ("trim(args.text)", None),
        ("length('four')", 4),
        ("length(args.text)", None),
        ("replace('a-b-c', '-', '')", "abc"),
        ("replace(args.text, '-', '')", None),
        ("split('a, b,,c', ',')", ["a", "b", "", "c"]),
        ("split(args.text, ',')", []),
        ("part('Ada King Lovelace', ' ', 1)", "Ada"),
        ("part('Ada King Lovelace', ' ', -1)", "Lovelace"),
        ("part('Ada', ' ', 2)", None),
        ("part(args.text, ' ', 1)", None),
        ("join(pumps.pump_id, ' and ')", "P1 and P2"),
        ("join([1, null, true, 'x'], '/')", "1/true/x"),
        ("join(pump.since, '/')", ""),
        ("format(1234.5, 2)", "1234.50"),
        ("format(2.5, 0)", "3"),
        ("format(pump.starts, 1)", None),
        ("format(now(), '%A, %d %B %Y, %H:%M')", "Monday, 02 March 2026, 09:00"),
        ("format('2026-12-06', '%d.%m.%Y %a %b 100%%')", "06.12.2026 Sun Dec 100%"),
        ("format(pump.since, '%Y')", None),
        ("[p.pump_id for p in pumps]", ["P1", "P2"]),
        ("[p.rate * 2 for p in pumps if p.rate > 3]", [8]),
        ("[x for x in lookup('pump', 'P9').tags]", []),
        ("sum([p.rate for p in pumps if p.since == null])", 2.5),
        ("[y + 1 for y in [x * 2 for x in [1, 2, 3] if x != 2]]", [3, 7]),
        ("{id: pump.pump_id, twice: pump.rate * 2}", {"id": "P1", "twice": 5}),
        ("{'id': {of: [1]}}.id.of", [1]),
        (
            "[{id: p.pump_id, day: p.since} for p in pumps if p.since != null]",
            [{"id": "P2", "day": "2026-02-01"}],
        ),
        ("lookup('pump', ['P1', 'P9']).rate", [2.5, None]),
    ],
)
def test_functions(text: str, value: Any) -> None:
    result = evaluate(text, any=True)
    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1 / (args.n - 3)", "division of 1 by zero"),
        ("pump.starts + 1", "+ needs numbers, got null"),
        ("args.any + 1", "+ needs numbers, got 'x'"),
        ("args.any < 1", "cannot order 'x' and 1"),
        ("args.any and true", "needs true or false, got 'x'"),
        ("1 in args.any", "in needs a list on its right, got 'x'"),
        ("args.any.field", "'x' has no field field"),
        ("count(args.any)", "count needs a list, got 'x'"),
        ("sum([1, args.any])", "sum needs numbers, got 'x'"),
        ("date(args.any)", "date needs a date such as 2026-03-02, got 'x'"),
        ("add_days(now(), 99999999)", "leaves the calendar"),
        ("9007199254740991 * 3", "number out of range"),
        ("add_minutes(now(), 99999999999)", "leaves the calendar"),
        ("minutes_between(args.any, now())", "needs a date-time such as"),
        ("average(pumps.state)", "average needs numbers, got 'on'"),
        ("tally(pumps.tags)", "tally needs plain values, got Old"),
        ("first(args.any)", "first needs a list, got 'x'"),
        ("if(args.any, 1, 2)", "needs true or false, got 'x'"),
        ("round(1.5, args.n + 90)", "round takes 0 to 9 digits, got 93"),
        ("lower(args.any.x)", "'x' has no field x"),
        ("replace('a', '', 'b')", "replace needs a text of at least one character"),
        ("split('a', '')", "split needs a text of at least one character"),
        ("part('a', ' ', args.n - 3)", "part counts from 1, or from -1 at the end, not 0"),
        ("format(args.any, 2)", "round needs numbers, got 'x'"),
        ("format(args.any, '%Y')", "needs a date-time such as"),
        ("[x for x in args.any]", "for x in needs a list, got 'x'"),
        ("[1 / 0 for p in pumps]", "division of 1 by zero"),
    ],
)
def test_wrong_values_are_evaluation_errors(text: str, words: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        evaluate(text, any="x")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("pmup.rate", "unknown name 'pmup'; known here: args, pump, pumps"),
        ("pump.speed", "pump has no field 'speed'; it has pump_id, state, rate"),
        ("args.m", "args has no field 'm'; it has n, text, any"),
        ("pumps.speed", "has no field 'speed'"),
        ("pump.rate.x", "number has no field 'x'"),
        ("pump.state == 'broken'", "'broken' is not one of on, off"),
        ("pump.state in ['on', 'gone']", None),
        ("pump.rate == 'fast'", "are never equal"),
        ("true == 1", "boolean and integer are never equal"),
        ("pump.rate < 'fast'", "cannot order number"),
        ("pump.rate + pump.pump_id", "+ needs numbers, got string"),
        ("pump.rate and true", "and needs true or false, got number"),
        ("not pump.rate", "not needs true or false, got number"),
        ("pump.rate contains 'a'", "contains needs text on both sides"),
        ("'a' in pump.state", "in needs a list on its right"),
        ("3 in pump.tags", "are never equal"),
        ("total(pumps)", "unknown function 'total'; known: add_days"),
        ("__import__('os')", "unknown function '__import__'"),
        ("round()", "write round(x, digits); 0 arguments were given"),
        ("sum(pump.rate)", "sum(list.field) does not take number"),
        ("min(pump.rate)", "does not take number"),
        ("date(pump.rate)", "date(when) does not take number"),
        ("lookup(pump, 'P1')", "write lookup('entity', key) with one of 'pump'"),
        ("lookup('tap', 'P1')", "write lookup('entity', key) with one of 'pump'"),
        ("lookup('pump', 1)", "needs a key, which is text, got integer"),
        ("pick(pump, 'speed')", "has no field 'speed'; it has pump_id"),
        ("pick(pumps, pump.state)", "write pick(rows, 'field', ...) with rows"),
        ("if(pump.rate, 1, 2)", "if needs true or false, got number"),
        ("if(true, 1)", "write if(condition, then, otherwise); 2 arguments"),
        ("now(1)", "write now(); 1 arguments were given"),
        ("lower(pump.rate)", "lower(text) does not take number"),
        ("join(pump.rate, ',')", "join(list, separator) does not take number"),
        ("format(pump.rate, '%Y')", "write format(number, digits) or format(date, '%d %B %Y')"),
        ("format(pump.since, 2)", "got date"),
        ("format(pump.since, '%d %Q')", "does not know '%Q'; it knows %Y, %m"),
        ("[x for x in pump.rate]", "for x in needs a list, got number"),
        ("[pump for pump in pumps]", "'pump' is bound already"),
        ("[p.speed for p in pumps]", "p has no field 'speed'"),
        ("[p for p in pumps if p.rate]", "if needs true or false, got number"),
        ("[[q for q in pumps] for p in pumps]", "a list is made inside the item of another"),
        ("x + sum([x for x in [1]])", "unknown name 'x'"),
        ("{a: pmup}", "unknown name 'pmup'"),
    ],
)
def test_type_errors_are_found_before_anything_runs(text: str, words: str | None) -> None:
    if words is None:  # one member fits, so it can be true
        compile_expression(parse(text), SCOPE)
        return
    with pytest.raises(ExpressionError) as caught:
        compile_expression(parse(text), SCOPE)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("text", "schema"),
    [
        ("pump.state", {"type": "string", "enum": ["on", "off"]}),
        ("pump.since", {"type": ["string", "null"], "format": "date"}),
        ("pumps.rate", {"type": "array", "items": {"type": "number"}}),
        ("count(pumps) * 2", {"type": "integer"}),
        ("count(pumps) / 2", {"type": "number"}),
        ("coalesce(pump.starts, 0)", {"type": "integer"}),
        ("coalesce(args.text, 'x')", {"type": "string"}),
        ("pump.rate > 1", {"type": "boolean"}),
        ("max(pumps.rate)", {"type": ["number", "null"]}),
        ("add_days(date(now()), 1)", {"type": "string", "format": "date"}),
        ("first(pumps.rate)", {"type": ["number", "null"]}),
        ("average(pumps.starts)", {"type": ["number", "null"]}),
        ("distinct(pumps.starts)", {"type": "array", "items": {"type": "integer"}}),
        ("add_minutes(pump.since, 5)", {"type": ["string", "null"]}),
        ("if(pump.rate > 1, 'fast', 'slow')", {"type": "string", "enum": ["fast", "slow"]}),
        (
            "pick(first(pumps), 'rate')",
            {
                "type": ["object", "null"],
                "properties": {"rate": {"type": "number"}},
                "required": ["rate"],
                "additionalProperties": False,
            },
        ),
        (
            "tally(pumps.state).count",
            {"type": "array", "items": {"type": "integer"}},
        ),
        ("args.any", {}),
        ("[1, 2.5]", {"type": "array", "items": {"type": "number"}}),
        ("null", {"type": "null"}),
    ],
)
def test_inferred_types_give_output_schemas(text: str, schema: Any) -> None:
    assert json_schema(compile_expression(parse(text), SCOPE).type) == schema


lists = st.lists(st.one_of(st.integers(-9, 9), st.none()), max_size=5).map(
    lambda items: ListOf(tuple(Literal(item) for item in items))
)
elements = st.one_of(
    st.just(Name("x")),
    st.just(Record(("own", "n"), (Name("x"), Access(Name("args"), "n")))),
    st.builds(Binary, st.just("=="), st.just(Name("x")), st.integers(-9, 9).map(Literal)),
)
tests_of_elements = st.one_of(
    st.none(),
    st.builds(Binary, st.sampled_from(["<", ">=", "!="]), st.just(Name("x")), numbers),
)


@given(st.builds(Each, elements, st.just("x"), lists, tests_of_elements), st.integers(-5, 5))
def test_lists_made_of_lists_agree_with_the_reference(tree: Each, n: int) -> None:
    assert isinstance(tree.source, ListOf)
    names = {"n": n, "text": None, "any": None}

    def value(node: Node, element: Any) -> Any:
        match node:
            case Name(name="x"):
                return element
            case Record(names=members, values=parts):
                made = [value(part, element) for part in parts]
                return dict(zip(members, made, strict=True))
            case Binary(operator=sign, left=Name(name="x"), right=right):
                return _binary(sign, element, reference(right, names))
        return reference(node, names)

    run = compile_expression(parse(show(tree)), SCOPE).run
    env = [names, None, 5]
    try:
        expected = [
            value(tree.item, item.value)
            for item in tree.source.items
            if isinstance(item, Literal)
            and (tree.condition is None or value(tree.condition, item.value))
        ]
    except WrongError:
        with pytest.raises(EvaluationError):
            run(env)
    else:
        assert run(env) == expected
    assert len(env) == 3  # nothing is left on the environment, whatever happened


def test_elements_cost_steps() -> None:
    run = compile_expression(parse("[x for x in [1, 2, 3]]"), SCOPE).run
    assert run([{}, None, 3]) == [1, 2, 3]
    with pytest.raises(EvaluationError, match="more than 1000000 steps in one call"):
        run([{}, None, 2])


def test_texts_of_elements_cost_steps() -> None:
    run = compile_expression(parse("[{x: concat(args.any, x)} for x in [1, 2]]"), SCOPE).run
    assert len(run([{"any": "a" * 4999}, None, 102])) == 2
    with pytest.raises(EvaluationError, match="more than 1000000 steps in one call"):
        run([{"any": "a" * 4999}, None, 101])


def test_a_list_to_make_another_of_is_bounded() -> None:
    run = compile_expression(parse("[x for x in args.any]"), SCOPE).run
    with pytest.raises(EvaluationError, match="for x in runs over at most 1000, got 1001"):
        run([{"any": [1] * 1001}, None, 10_000])


def test_texts_that_grow_are_bounded() -> None:
    for text in ("replace(args.any, 'a', args.any)", "join([args.any, args.any], args.any)"):
        run = compile_expression(parse(text), SCOPE).run
        with pytest.raises(EvaluationError, match="10000"):
            run([{"any": "a" * 9000}, None, 10])
