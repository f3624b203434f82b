"""Copies of a test in which one assertion says the opposite.

Of a test and such a copy at most one can pass. A candidate that passes both does not pass by what
its code does: it has silenced the assertions, or returns what equals everything. The copy notes
that it comes to the turned assertion, and raises `ContradictionError` right after it: so an
assertion that is never reached, or whose failure the test itself expects, accuses nobody.
"""

# This program runs alone in a bare interpreter.
# ruff: noqa: PTH118, PTH123
from __future__ import annotations

import ast
import os
import types
import warnings
from itertools import islice
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

EQUALITIES = {"assertEqual", "assertListEqual", "assertDictEqual", "assertTupleEqual"}
EQUALITIES |= {"assertSetEqual", "assertMultiLineEqual", "assertSequenceEqual"}
EQUALITIES |= {"assertAlmostEqual"}
RAISING = {"assertRaises", "assertRaisesRegex", "raises"}
PAIRS = (
    ("assertTrue", "assertFalse"),
    ("assertIs", "assertIsNot"),
    ("assertIsNone", "assertIsNotNone"),
    ("assertIsInstance", "assertNotIsInstance"),
    ("assertGreater", "assertLessEqual"),
    ("assertLess", "assertGreaterEqual"),
    ("assertRegex", "assertNotRegex"),
)
OPPOSITES = (
    dict(PAIRS)
    | {b: a for a, b in PAIRS}
    | {
        "assertNotEqual": "assertEqual",
        "assertNotAlmostEqual": "assertAlmostEqual",
        "assertNotIn": "assertIn",
    }
)

MOST, SOME = 12, 3
"""Copies of one test, those of its first assertions; those that are run where not all are."""

MARK, NEVER, NOTE = "\0contradiction\0", "\0never\0", "\0note\0"
"""Stand in the source for what the copy's code holds as constants: it looks no name up that
somebody could have changed."""

CATCHING = ("raises", "suppress", "subtest", "warns")
"""In the words of a `with` that may keep the failure of an assertion to itself."""


class ContradictionError(BaseException):
    """Raised where a turned assertion has passed."""


class NeverError(Exception):
    """Expected where the test expects another exception; nothing raises it."""


reached: list[bool] = []
"""Filled in a process of its own by a copy that comes to its turned assertion."""


def note() -> None:
    reached.append(True)


class TestSource(NamedTuple):
    """A test as it stands in its file."""

    path: str
    name: str
    plain: bool
    """Whether nothing decorates it, so that what runs must be just this function."""
    stores: frozenset[str]
    """Names of its module that functions there write to."""
    copies: dict[int, types.CodeType]
    """By the place of the turned assertion."""


class TestFile(NamedTuple):
    tree: ast.Module
    futures: list[ast.stmt]
    stores: frozenset[str]


class Inversions:
    """The copies of the tests below `root`, made before any code under test is loaded.

    `own` are assertions that the project defines itself: what they do is its affair, and they are
    not turned.
    """

    def __init__(self, root: str, own: list[str], *, every: bool) -> None:
        self.root, self.own, self.every = root, frozenset(own), every
        self._files: dict[str, TestFile | None] = {}

    def of(self, name: str, only: int | None = None) -> TestSource | None:
        """The source of this test, dotted or a node id; None where it does not stand under its
        name, as that of an inherited or a generated test does not. `only` this copy is made, or
        else `every` one, or some."""
        for path, chain in self._places(name.partition("[")[0]):
            file = self._file(path)
            found = [] if file is None else walk(file.tree.body, chain)
            if file is not None and found:
                turned = list(islice(turns(found[-1].body, self.own), MOST))
                places = list(range(len(turned))) if only is None else [only]
                if not self.every:
                    places = sorted(places, key=lambda _: os.urandom(4))[:SOME]
                made = {
                    place: copy_of(path, file.futures, found, turned[place]) for place in places
                }
                return TestSource(
                    path=path,
                    name=found[-1].name,
                    plain=not any(is_decorated(node) for node in found),
                    stores=file.stores,
                    copies={place: code for place, code in made.items() if code is not None},
                )
        return None

    def _places(self, name: str) -> Iterator[tuple[str, list[str]]]:
        path, *chain = name.split("::")
        if chain:
            yield os.path.join(self.root, path), chain
            return
        parts = name.split(".")
        for cut in range(len(parts) - 1, 0, -1):
            yield os.path.join(self.root, *parts[:cut]) + ".py", parts[cut:]

    def _file(self, path: str) -> TestFile | None:
        if path not in self._files:
            try:
                with open(path, "rb") as file:
                    tree = ast.parse(file.read())
            except (OSError, SyntaxError, ValueError, RecursionError):
                self._files[path] = None
            else:
                named = [node.names for node in ast.walk(tree) if isinstance(node, ast.Global)]
                self._files[path] = TestFile(
                    tree=tree,
                    futures=[node for node in tree.body if is_future(node)],
                    stores=frozenset(name for names in named for name in names),
                )
        return self._files[path]


def is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def is_decorated(node: Any) -> bool:
    return bool(node.decorator_list or getattr(node, "keywords", None))


def walk(body: list[ast.stmt], chain: list[str]) -> list[Any]:
    """The classes, and at the end the function, that the names lead to."""
    found: list[Any] = []
    for place, name in enumerate(chain, 1):
        kinds = ast.FunctionDef if place == len(chain) else ast.ClassDef
        here = [node for node in body if isinstance(node, kinds) and node.name == name]
        if not here:
            return []
        found.append(here[-1])
        body = here[-1].body
    return found


def copy_of(
    path: str, futures: list[ast.stmt], found: list[Any], turned: list[ast.stmt]
) -> types.CodeType | None:
    """The function at the end of `found` with this body; None where it does not compile."""
    function = found[-1]
    top: ast.stmt = ast.FunctionDef(
        name=function.name, args=function.args, body=turned, decorator_list=[]
    )
    for owner in reversed(found[:-1]):  # so that names are mangled, and super() works
        top = ast.ClassDef(name=owner.name, bases=[], keywords=[], body=[top], decorator_list=[])
    module = ast.Module([*futures, ast.fix_missing_locations(top)], [])
    try:
        with warnings.catch_warnings(action="ignore"):  # a text is called: `note`
            code = compile(module, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError):
        return None
    for owner in found:
        code = next(c for c in code.co_consts if is_code(c) and c.co_name == owner.name)
    swapped: dict[str, Any] = {MARK: ContradictionError, NEVER: NeverError, NOTE: note}
    constants = [swapped.get(c, c) if isinstance(c, str) else c for c in code.co_consts]
    return code.replace(co_consts=tuple(constants))


def is_code(value: Any) -> bool:
    return isinstance(value, types.CodeType)


def turns(
    body: list[ast.stmt], own: frozenset[str], *, caught: bool = False
) -> Iterator[list[ast.stmt]]:
    """The body with one assertion turned, for each of them. Nested functions are left alone. What
    is `caught` fails unseen, and is not noted."""
    for at, node in enumerate(body):
        before, after = body[:at], body[at + 1 :]
        turned = turned_statement(node, own)
        if turned is not None:
            noted = [] if caught or isinstance(node, ast.With) else [noting(node)]
            yield [*before, *noted, turned, marked(node), *after]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        inside = caught or catches(node)
        for field in ("body", "orelse", "finalbody"):
            for changed in turns(getattr(node, field, None) or [], own, caught=inside):
                yield [*before, with_field(node, field, changed), *after]


def catches(node: ast.stmt) -> bool:
    """Whether the failure of an assertion inside the statement may end there."""
    if isinstance(node, ast.With | ast.AsyncWith):
        words = " ".join(ast.unparse(item.context_expr) for item in node.items).lower()
        return any(word in words for word in CATCHING)
    return bool(getattr(node, "handlers", None))


def with_field(node: ast.stmt, field: str, value: Any) -> ast.stmt:
    fields: dict[str, Any] = {name: getattr(node, name, None) for name in node._fields}
    return ast.copy_location(type(node)(**fields | {field: value}), node)


def marked(node: ast.stmt) -> ast.stmt:
    return ast.copy_location(ast.Raise(exc=ast.Constant(MARK), cause=None), node)


def noting(node: ast.stmt) -> ast.stmt:
    return ast.copy_location(ast.Expr(ast.Call(ast.Constant(NOTE), [], [])), node)


def turned_statement(node: ast.stmt, own: frozenset[str]) -> ast.stmt | None:
    """The statement with its assertion turned; None where it is none."""
    if isinstance(node, ast.Assert):
        return ast.copy_location(ast.Assert(test=opposite(node.test), msg=None), node)
    if isinstance(node, ast.Expr) and (call := turned_call(node.value, own)) is not None:
        return ast.copy_location(ast.Expr(call), node)
    if isinstance(node, ast.With) and len(node.items) == 1:
        call = turned_call(node.items[0].context_expr, own)
        if call is not None:
            item = ast.withitem(call, node.items[0].optional_vars)
            return with_field(node, "items", [item])
    return None


def turned_call(node: ast.expr, own: frozenset[str]) -> ast.Call | None:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not node.args:
        return None
    name, arguments = node.func.attr, list(node.args)
    owner = node.func.value
    if not isinstance(owner, ast.Name) or any(isinstance(a, ast.Starred) for a in arguments):
        return None
    if name in own:
        return None
    if name in RAISING:
        arguments[0] = ast.Constant(NEVER)
    elif name in EQUALITIES and len(arguments) >= 2:
        arguments[:2] = different(*arguments[:2])
    elif name == "assertIn" and len(arguments) >= 2:
        arguments[:2] = outside(*arguments[:2])
    elif name in OPPOSITES:
        name = OPPOSITES[name]
    else:
        return None
    func = ast.Attribute(owner, name, ast.Load())
    return ast.copy_location(ast.Call(func, arguments, node.keywords), node)


def opposite(test: ast.expr) -> ast.expr:
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        kind, sides = test.ops[0], (test.left, test.comparators[0])
        if isinstance(kind, ast.Eq | ast.In):
            left, right = different(*sides) if isinstance(kind, ast.Eq) else outside(*sides)
            return ast.copy_location(ast.Compare(left, [kind], [right]), test)
    return ast.copy_location(ast.UnaryOp(ast.Not(), test), test)


def different(left: ast.expr, right: ast.expr) -> tuple[ast.expr, ast.expr]:
    """One of the sides changed, so that what was equal no longer is: a literal to another of its
    type, anything else put into a list."""
    if isinstance(left, ast.Constant) and not isinstance(right, ast.Constant):
        return other(left), right
    return left, other(right)


def outside(element: ast.expr, group: ast.expr) -> tuple[ast.expr, ast.expr]:
    """An element and a group changed, so that it is not in it."""
    if isinstance(element, ast.Constant):
        return other(element), group
    return element, ast.copy_location(ast.List([ast.Constant(NEVER)], ast.Load()), group)


def other(node: ast.expr) -> ast.expr:
    value = node.value if isinstance(node, ast.Constant) else None
    changed: Any
    if isinstance(value, bool):
        changed = not value
    elif isinstance(value, int | float):
        changed = value + int.from_bytes(os.urandom(2), "big") + 1
    elif isinstance(value, str):
        changed = value + chr(97 + os.urandom(1)[0] % 26)
    else:
        return ast.copy_location(ast.List([node], ast.Load()), node)
    return ast.copy_location(ast.Constant(changed), node)
