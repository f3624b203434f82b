"""The folders of each package: their order, their size, their docstrings, and no circle anywhere.

A folder imports only folders that stand before it in `ROOMS`; "." is a package's or folder's own
modules. Imports under TYPE_CHECKING and inside functions count like any other.
"""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MOST_MODULES = 15
"""In one folder, beside `__init__` and `__main__`."""

ROOMS = {
    "records": [".", "tables", "store", "reading", "sources", "chat"],
    "tool_specs": [
        *(
            "language/syntax",
            "language",
            "execution",
            "growth",
            "domains",
            "importing/instructing",
            "importing",
            "toolsets",
            "coverage",
        ),
        *("validation/mutation", "validation/states", "validation"),
        ".",
    ],
    "sandboxes": [
        *("inside/hooks", "inside", "core/agent", "core", "local"),
        *("kubernetes/api", "kubernetes", "egress", "lending", "mcp/protocol"),
        *("mcp/packages", "mcp/domains", "mcp", "code", "installing", "bench", "."),
    ],
    "offline_llm": [
        *("server", "reading", "settings", "generator", "rewriter", "code", "roles", "simulator"),
        *("tools", "tools/patterns", "tools/operators", "."),
    ],
    "synth": [
        *("llm/settings", "llm/wire", "llm/endpoint", "llm", "llm/probing"),
        *(
            "prompts",
            "rubrics/reading",
            "rubrics",
            "rubrics/statements",
            "engine",
            "engine/processes",
            "render",
            "matching",
        ),
        *("episode/tools", "episode/users", "episode"),
        *("tasks/agents", "tasks/goals", "tasks/proof", "tasks/forms", "tasks/words"),
        *("tasks/servers", "tasks"),
        *("curation/settings", "judging/perturbation", "judging", "curation"),
        *("catalogue/proposals", "catalogue", "catalogue/evolution", "catalogue/writing"),
        *("rephrasing/structure", "rephrasing/facts", "rephrasing/formulas"),
        *(
            "rephrasing/fidelity",
            "rephrasing/exact",
            "rephrasing/writing",
            "rephrasing/sources",
            "rephrasing/calibration",
            "rephrasing/decisions",
            "rephrasing",
        ),
        *("importing", "pipeline", "publish", "browser", "exports/formats", "exports"),
        *("gym/core", "gym/maths", "gym/instructions", "gym/grounding", "gym/programs"),
        *("gym/safety", "gym/tool_use", "gym", "."),
    ],
    "trainer": [
        *("data", "model/cpu", "model", "optim", "training", "inference", "serving"),
        *("evaluation", "rl/objective", "rl/rollouts", "rl/critic", "rl", "."),
    ],
    "flows": ["runtime", "training", ".", "cli/shared", "cli/commands", "cli/tool_commands", "cli"],
}
"""Package -> its folders in their order."""

SUITES = {"sandboxes": ("attacks", "acts", "conformance")}
"""Folders of tests that are about a whole package."""


def modules() -> dict[str, Path]:
    """Dotted name -> file, of every module of every package."""
    found = {}
    for package in ROOMS:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts).removesuffix(".__init__")] = path
    return found


MODULES = modules()


def imported(name: str) -> Iterator[str]:
    """Modules of ours that a module imports, wherever the import stands in it."""
    for node in ast.walk(ast.parse(MODULES[name].read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module:
            below = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (module for module in below if module in MODULES)
            if node.module in MODULES and not all(module in MODULES for module in below):
                yield node.module


GRAPH = {name: set(imported(name)) - {name} for name in MODULES}


def room_of(name: str) -> tuple[str, str]:
    """(package, folder) of a module."""
    package, *folders = MODULES[name].relative_to(ROOT).parent.parts
    return package, "/".join(folders) or "."


def test_no_module_imports_itself_by_way_of_others() -> None:
    try:
        TopologicalSorter(GRAPH).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


@pytest.mark.parametrize("package", ROOMS)
def test_a_folder_imports_only_folders_before_it(package: str) -> None:
    order = ROOMS[package]
    wrong = [
        f"{name} imports {other}"
        for name, others in GRAPH.items()
        for other in sorted(others)
        if (here := room_of(name))[0] == package
        and (there := room_of(other))[0] == package
        and order.index(there[1]) > order.index(here[1])
    ]
    assert not wrong


@pytest.mark.parametrize("package", ROOMS)
def test_folders_are_named_small_and_at_most_two_deep(package: str) -> None:
    folders = {room_of(name)[1] for name in MODULES if room_of(name)[0] == package}
    assert folders == set(ROOMS[package])
    assert all(folder.count("/") < 2 for folder in folders)
    for folder in folders:
        files = {path.stem for path in (ROOT / package / folder).glob("*.py")}
        assert len(files - {"__init__", "__main__"}) <= MOST_MODULES, f"{package}/{folder}"


@pytest.mark.parametrize("package", ROOMS)
def test_every_folder_says_what_belongs_there(package: str) -> None:
    for folder in ROOMS[package]:
        opening = ROOT / package / folder / "__init__.py"
        assert ast.get_docstring(ast.parse(opening.read_text())), opening


def test_the_tests_mirror_the_packages() -> None:
    for package, rooms in ROOMS.items():
        known = {*rooms, *SUITES.get(package, ()), *(room.split("/")[0] for room in rooms)}
        for path in (ROOT / "tests" / package).rglob("test_*.py"):
            folder = path.parent.relative_to(ROOT / "tests" / package).as_posix()
            assert folder in known, path
