"""Planted bugs: each kind of mutation keeps its promise, and grading is exact."""

import ast
import asyncio
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from records.errors import ItemError
from sandboxes.code.mutations import (
    OPERATORS,
    Mutation,
    MutationOperator,
    in_rounds,
    mutations_of,
    undo,
)
from sandboxes.code.projects import Project, builtin_projects
from sandboxes.code.suite import run_suite
from sandboxes.code.swe import Baseline, baseline_of, inject_bug, injected_bug
from sandboxes.lending.leases import available
from tests.examples import examples
from tests.sandboxes.code.code_cases import MANY, ONE, RIGHT, TESTS, WRONG, project, with_price

needs_sandbox = pytest.mark.skipif(available() is not None, reason=f"no sandbox: {available()}")

EXAMPLES: dict[MutationOperator, tuple[str, str]] = {
    "boundary": ("x = a < b\n", "x = a <= b\n"),
    "comparison": ("x = a == b\n", "x = a != b\n"),
    "arithmetic": ("x = (a) + b\n", "x = (a) - b\n"),
    "logic": ("x = a and b\n", "x = a or b\n"),
    "off_by_one": ("x = a[1]\n", "x = a[2]\n"),
    "constant": ("x = True\n", "x = False\n"),
    "swapped_arguments": ("x = f(a, b.c, 3)\n", "x = f(b.c, a, 3)\n"),
    "dropped_branch": ("if a:\n    if b:\n        c()\n    d = 1\n", "if a:\n    d = 1\n"),
    "dropped_negation": ("x = not a\n", "x = a\n"),
    "removed_call": ("if a:\n    b()\n    c = 1\n", "if a:\n    c = 1\n"),
}


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_operator_makes_its_change(operator: MutationOperator) -> None:
    source, changed = EXAMPLES[operator]
    made = [m.apply(source) for m in mutations_of("a.py", source) if m.operator == operator]
    assert changed in made


SOURCES = [
    (path, text) for p in builtin_projects().values() for path, text in p.sources.items() if text
]


@pytest.mark.parametrize(("path", "text"), SOURCES, ids=[path for path, _ in SOURCES])
def test_a_mutation_is_another_program_and_its_undo_is_exact(path: str, text: str) -> None:
    for mutation in mutations_of(path, text):
        changed = mutation.apply(text)
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(text)), mutation
        fix = undo(text, mutation)
        assert fix.old.strip()
        assert changed.count(fix.old) == 1
        assert changed.replace(fix.old, fix.new) == text


@settings(max_examples=examples(30), deadline=None)
@given(st.integers(0, 10**6))
def test_rounds_take_every_kind_before_any_comes_twice(seed: int) -> None:
    path, text = SOURCES[-1]
    found = mutations_of(path, text)
    drawn = list(in_rounds(found, Random(seed).shuffle))
    kinds = {m.operator for m in found}
    assert {m.operator for m in drawn[: len(kinds)]} == kinds
    assert sorted(drawn, key=repr) == sorted(found, key=repr)


FOUND = mutations_of("shop/price.py", RIGHT)
OF_THE_CONDITION = [m for m in FOUND if " < 10 " not in m.apply(RIGHT)]


@pytest.mark.slow
@needs_sandbox
@pytest.mark.parametrize(
    "mutations",
    [OF_THE_CONDITION, pytest.param(FOUND, marks=pytest.mark.scale)],
    ids=["of the condition", "all"],
)
def test_a_bug_is_kept_only_if_the_tests_notice_it(mutations: list[Mutation]) -> None:
    """Each takes up to six sandboxes. Those of the condition are of four kinds, and the tests
    notice some of them and not others; the rest are noticed just so."""

    async def run() -> None:
        shop = project()
        baseline = await baseline_of(shop)
        seen = {True: 0, False: 0}
        for mutation in mutations:
            bug = await injected_bug(shop, baseline, mutation)
            seen[bug is not None] += 1
            if bug is None:
                continue
            assert bug.files["shop/price.py"].replace(*bug.fix) == RIGHT
            names = [*bug.fail_to_pass, *bug.pass_to_pass]
            mended = await run_suite(shop, with_price(RIGHT), names)
            assert mended.passed == set(names)
            broken = await run_suite(shop, with_price(bug.files["shop/price.py"]), names)
            assert broken.passed == set(bug.pass_to_pass)
        assert seen[True] >= 2  # some mutations are noticed, others fail everything or nothing
        assert seen[False] >= 1

    asyncio.run(run())


@pytest.mark.slow
@needs_sandbox
def test_plant_draws_by_its_seed_and_says_where_nothing_shows() -> None:
    async def run() -> None:
        coins = builtin_projects()["coinpurse"]
        baseline = await baseline_of(coins)
        assert len(baseline.names) >= 40
        first = await inject_bug(coins, baseline, Random(3))
        assert first == await inject_bug(coins, baseline, Random(3))
        assert set(first.fail_to_pass) | set(first.pass_to_pass) == set(baseline.names)
        blind = Baseline(tuple(t for t in baseline.tests if "test_nothing_to_undo" in t.name), {})
        with pytest.raises(ItemError, match="no_bug_found"):
            await inject_bug(coins, blind, Random(3))

    asyncio.run(run())


@needs_sandbox
def test_what_partial_solutions_pass_is_exact() -> None:
    cases = [
        (RIGHT, {ONE, MANY}),
        (WRONG, {ONE}),
        ("def price(count):\n    return 0\n", set()),
        ("def price(count):\n    return 45\n", {MANY}),  # mends one, breaks the other
        ("syntax error", set()),
    ]
    for source, passed in cases:
        run = asyncio.run(run_suite(project(), with_price(source), [ONE, MANY]))
        assert (run.passed, run.forged) == (passed, False), source


@pytest.mark.parametrize("path", ["../a.py", "/a.py", "a/../b.py", "a//b.py", "a" * 256, "a/" * 50])
def test_a_path_that_leaves_the_project_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="a project's path"):
        Project(name="x", files={path: "", "tests/test_a.py": TESTS})
