"""Formulas: writings of one are one tree, other formulas are others, and any text is safe."""

import random
import sys

import pytest

from synth.rephrasing.facts.text import ReadText
from synth.rephrasing.fidelity.checks import Fidelity, fidelity_of, reasons_of
from synth.rephrasing.fidelity.config import FidelityConfig
from synth.rephrasing.fidelity.maths import answer_of, holds
from synth.rephrasing.formulas.parser import MAX_DEPTH, parse
from synth.rephrasing.formulas.tokens import MAX_TOKENS, FormulaError
from synth.rephrasing.formulas.trees import Tree, pairs, value_of

SAME = [
    (r"\frac{1}{2}x", "x/2", "0.5x", r"\tfrac12 x"),
    (r"\sqrt{2}", "2^{1/2}", "sqrt(2)", "\u221a2"),
    (r"\sqrt[3]{x}", "x^{1/3}"),
    ("a + b - c", "b - c + a", "-c+(a+b)"),
    (r"2 \cdot 3 \cdot x", "2*3x", "x * 3 * 2", "2 \u00d7 3x"),
    ("x > 3", "3 < x"),
    ("a = b", "b = a"),
    (r"x \le 3", "x <= 3", r"3 \geq x", "x \u2264 3"),
    (r"\{1, 2, 3\}", r"\{3, 1, 2\}"),
    (r"\sin^2 x", r"(\sin x)^2", r"\sin(x)^2"),
    (r"45^\circ", "45\u00b0"),
    (r"-\frac{3}{4}", "-0.75", r"\frac{-3}{4}", "-3/4"),
    (r"\left(1+x\right)^2", "(1+x)^2", "(x+1)\u00b2"),
    ("10000", r"10\,000", "10,000", "10{,}000"),
    (r"x_1^2", "x_{1}^{2}"),
    (r"\log_2 8 = 3", r"3 = \log_{2}(8)"),
]


@pytest.mark.parametrize("writings", SAME, ids=lambda writings: writings[0])
def test_writings_of_a_formula_are_one(writings: tuple[str, ...]) -> None:
    assert len({_relation(parse(writing)) for writing in writings}) == 1


DIFFERENT = [
    ("a - b", "b - a"),
    ("x < 3", "x > 3"),
    ("x < 3", r"x \le 3"),
    ("x^2 + 1", "x^2 - 1"),
    ("x^2", "2x"),
    ("(a+b)^2", "a+b^2"),
    (r"\frac{a}{b}", r"\frac{b}{a}"),
    ("(1, 2)", "(2, 1)"),
    ("[0, 1]", "[0, 1)"),
    (r"\sin x", r"\cos x"),
    ("f(g(x))", "g(f(x))"),
    ("x_1", "x_2"),
    (r"\sqrt{2}", r"\sqrt{3}"),
    (r"\binom{5}{2}", r"\binom{2}{5}"),
    (r"\int_0^1 x", r"\int_1^0 x"),
    ("6/8", "3/4"),
    ("2+3", "5"),
]


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_different_formulas_are_different_trees(one: str, other: str) -> None:
    assert _relation(parse(one)) != _relation(parse(other))


def _relation(tree: Tree) -> Tree:
    return pairs(tree)[0] if tree[0] == "chain" else tree


def test_decimal_commas_hang_on_the_language() -> None:
    assert parse("3,5", commas=True) == parse("3.5") == parse("3{,}5")
    assert parse("1,2") == parse("1, 2")
    assert parse("1,000", commas=True) == parse("1")


OPERATORS = ("+", "-", "*", "/")


def made(rng: random.Random, depth: int = 0) -> tuple[str, str]:
    """The same random expression as LaTeX and as sympy's text."""
    if depth > 3 or rng.random() < 0.2:
        leaf = rng.choice(["x", "y", "z", str(rng.randint(1, 9)), f"0.{rng.randint(1, 9)}"])
        return leaf, f"Rational('{leaf}')" if leaf[0].isdigit() else leaf
    kind = rng.choice([*OPERATORS, "^", "neg", "sqrt"])
    a, plain_a = made(rng, depth + 1)
    if kind == "neg":
        return rf"\left(-{{{a}}}\right)", f"(-({plain_a}))"
    if kind == "sqrt":
        return rf"\sqrt{{{a}}}", f"sqrt({plain_a})"
    if kind == "^":
        n = rng.randint(2, 3)
        return f"({a})^{{{n}}}", f"(({plain_a})**{n})"
    b, plain_b = made(rng, depth + 1)
    if kind == "/":
        return rf"\frac{{{a}}}{{{b}}}", f"(({plain_a})/({plain_b}))"
    if kind == "*":
        return rf"({a}) \cdot ({b})", f"(({plain_a})*({plain_b}))"
    return f"({a}) {kind} ({b})", f"(({plain_a}){kind}({plain_b}))"


def test_equal_trees_are_equal_to_sympy_and_values_agree() -> None:
    """The oracle reads formulas that this test makes, never a text of anybody else."""
    sympy = pytest.importorskip("sympy")
    names = {name: sympy.Symbol(name, positive=True) for name in "xyz"}
    names |= {"sqrt": sympy.sqrt, "Rational": sympy.Rational}
    by_tree: dict[Tree, str] = {}
    met = checked = 0
    for seed in range(1_500):
        latex, plain = made(random.Random(seed), depth=2)
        tree = parse(latex)
        other = by_tree.setdefault(tree, plain)
        if other != plain:
            met += 1
            difference = eval(f"({plain}) - ({other})", {"__builtins__": {}}, names)
            assert sympy.simplify(difference) == 0, (plain, other)
        value = value_of(tree)
        if value is not None:
            checked += 1
            exact = eval(plain, {"__builtins__": {}}, names)
            assert sympy.nsimplify(exact) == sympy.Rational(value.numerator, value.denominator)
    assert met > 10
    assert checked > 20


def test_moving_the_parts_of_a_sum_changes_no_tree() -> None:
    for seed in range(200):
        rng = random.Random(seed)
        terms = [made(rng, depth=2)[0] for _ in range(rng.randint(2, 5))]
        moved = rng.sample(terms, len(terms))
        assert parse("+".join(f"({t})" for t in terms)) == parse("+".join(f"({t})" for t in moved))


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5_000,
        "(" * 5_000 + "1" + ")" * 5_000,
        r"\frac" * 3_000,
        "-" * 10_000 + "1",
        "x^" + "-" * 5_000 + "1",
        "x^{" * 2_000 + "1" + "}" * 2_000,
        "x_" * 4_000 + "1",
        r"\sqrt[" * 2_000,
        "|" * 5_000,
        "9" * 100_000,
        r"\begin{pmatrix}" * 500,
        "1+" * 100_000 + "1",
        "\\text{" * 10_000,
        "{}" * 3_000,
        "=" * 5_000,
        "x" * 100_000,
    ],
)
def test_hostile_formulas_are_refused_within_bounds(text: str) -> None:
    """Counted in calls of Python functions, of which an honest formula of MAX_TOKENS needs more."""
    calls = steps_of(text)
    assert calls < 100 * MAX_TOKENS
    assert MAX_DEPTH < 100


def steps_of(text: str) -> int:
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        parse(text)
    except FormulaError:
        pass
    finally:
        sys.setprofile(None)
    return calls


def test_huge_powers_are_not_worked_out() -> None:
    for text in ("9^{9^9}", "(9^{64})^{64}", "99!", r"\binom{10000}{5000}", "2^{0.5}", "0^{-1}"):
        assert value_of(parse(text)) is None
    assert value_of(parse(r"\frac{3!}{2^2} + 25\%")) == value_of(parse("1.75"))


@pytest.mark.parametrize(
    ("equation", "truth"),
    [
        ("3 \\cdot 4 = 12", True),
        ("3 \\cdot 4 = 13", False),
        (r"\frac{10}{3} = 3.33", True),
        (r"\frac{10}{3} = 3.5", False),
        ("5 < 4", False),
        ("x = 4", None),
        (r"\sqrt{49} = 7", True),
    ],
)
def test_closed_equations_are_worked_out(equation: str, truth: bool | None) -> None:
    (pair,) = pairs(parse(equation))
    assert holds(pair) is truth


PROBLEM = """Solve $x^2 - 5x + 6 = 0$.

The left side is $(x - 2)(x - 3)$, since $2 + 3 = 5$ and $2 \\cdot 3 = 6$. Hence $x = 2$ or $x = 3$.

Answer: $\\{2, 3\\}$
"""
NOTES = """**Task.** For which $x$ does $x^2 - 5x + 6 = 0$ hold?

- We look for two numbers: $3 + 2 = 5$ and $3 \\cdot 2 = 6$.
- So the left side is $(x - 3)(x - 2)$.
- It follows that $x = 2$ or $x = 3$.

Answer: $\\{3, 2\\}$
"""


def notes(rewrite: str, source: str = PROBLEM) -> Fidelity:
    return fidelity_of(source, rewrite, kind="maths")


def lost_in(rewrite: str, source: str) -> tuple[str, ...]:
    maths = notes(rewrite, source).maths
    assert maths is not None
    return maths.formulas.lost


def test_notes_keep_formulas_in_any_writing() -> None:
    assert reasons_of(notes(NOTES).columns(), FidelityConfig()) == []


@pytest.mark.parametrize(
    ("was", "put", "reason"),
    [
        ("5x", "4x", "formula_lost"),
        ("(x - 3)(x - 2)", "(x - 3)(x + 2)", "formula_lost"),
        ("3 \\cdot 2 = 6", "3 \\cdot 2 = 8", "formula_false"),
        ("\\{3, 2\\}", "\\{3, 1\\}", "answer_lost"),
        ("or $x = 3$", "", "formula_lost"),
    ],
)
def test_a_wrong_formula_is_named(was: str, put: str, reason: str) -> None:
    changed = NOTES.replace(was, put)
    assert changed != NOTES
    assert reason in reasons_of(notes(changed).columns(), FidelityConfig())


def test_steps_worked_out_further_are_no_fault_when_true() -> None:
    more = NOTES.replace("It follows", "As $5^2 - 4 \\cdot 6 = 1$, there are two. It follows")
    assert "formula_false" not in reasons_of(notes(more).columns(), FidelityConfig())
    wrong = more.replace("6 = 1", "6 = 2")
    assert "formula_false" in reasons_of(notes(wrong).columns(), FidelityConfig())


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("so \\boxed{\\frac{1}{2}} follows", "\\frac{1}{2}"),
        ("Antwort: 12 cm\nmehr", "12 cm"),
        ("**Answer:** $x = 3$", "$x = 3$"),
        ("\u7b54\u6848\uff1a5", "5"),
        ("nothing of the kind", None),
    ],
)
def test_final_answers_are_found(text: str, answer: str | None) -> None:
    assert answer_of(ReadText(text)) == answer


def test_plain_formulas_in_prose_are_formulas() -> None:
    source = "We know that x^2 + 3x = 10 and so x = 2 holds, which gives 2 * 5 = 10 in the end."
    kept = "In the end 5 * 2 = 10, because 10 = 3x + x^2 is known to us and therefore x = 2 holds."
    assert lost_in(kept, source) == ()
    assert len(lost_in(kept.replace("3x", "4x"), source)) == 1


GERMAN = """Ein Guthaben von $2400$ Euro wird zwei Jahre lang mit $5\\%$ im Jahr verzinst.

Nach dem ersten Jahr sind es $2400 \\cdot 1{,}05 = 2520$ Euro, nach dem zweiten Jahr sind es
$2520 \\cdot 1{,}05 = 2646$ Euro. Die Zinsen betragen also $2646 - 2400 = 246$ Euro.

$246$
"""
ENGLISH = """A balance of $2400$ euros earns interest at $5\\%$ a year for two years.

After the first year it is $2400 \\cdot 1.05 = 2520$ euros, and after the second year it comes to
$2520 \\cdot 1.05 = 2646$ euros. So the interest is $2646 - 2400 = 246$ euros.

$246$
"""


def translated(rewrite: str) -> list[str]:
    fidelity = fidelity_of(GERMAN, rewrite, kind="maths", language="en", answer="$246$")
    return reasons_of(fidelity.columns(), FidelityConfig())


def test_a_translation_is_held_to_its_formulas() -> None:
    assert translated(ENGLISH) == []
    assert "formula_lost" in translated(ENGLISH.replace("1.05", "1.5"))
    assert "answer_lost" in translated(ENGLISH.replace("246", "264"))
    assert translated(GERMAN)[0] == "wrong_language"


def test_capitals_of_german_nouns_are_no_names() -> None:
    other = GERMAN.replace("Guthaben", "Betrag").replace("zweiten Jahr", "zweiten Jahr danach")
    assert fidelity_of(GERMAN, other, kind="maths").names.added == ()


@pytest.mark.parametrize(
    ("was", "put", "reason"),
    [
        ("at $60$ km", "at $63$ km", "numbers_added"),
        ("dauert $1{,}5$", "dauert $1{,}6$", "numbers_"),
    ],
)
def test_a_lone_number_in_formula_marks_is_a_number(was: str, put: str, reason: str) -> None:
    source = "A car drives at $60$ km per hour for $2$ hours, which makes $2 \\cdot 60 = 120$ km."
    if "dauert" in was:
        source = "Die Fahrt dauert $1{,}5$ Stunden, und der Weg ist $90$ km lang, wie man sieht."
    fidelity = fidelity_of(source, source.replace(was, put), kind="maths")
    assert any(
        found.startswith(reason) for found in reasons_of(fidelity.columns(), FidelityConfig())
    )
