"""The order of packages, what may be imported where, and what the core can do without."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ORDER = ["records", "tool_specs", "sandboxes", "offline_llm", "synth", "trainer", "flows"]
TRAINER_MAY_USE_SYNTH = ("trainer/evaluation/", "trainer/rl/")
SPEAKS_THE_PROTOCOL = "trainer/serving/"
"""Serves a model as `offline_llm.server` does, and so shares how requests are read."""
ONLY_IN = {"prefect": "flows/", "torch": "trainer/", "kubernetes": "sandboxes/kubernetes"}


@cache
def modules_named_in(path: Path) -> frozenset[str]:
    """Every module a file imports, dynamic imports and `python -m` of ours included."""
    return frozenset(_named_in(path))


def _named_in(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide the order of packages"
            yield node.module or ""
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if match := re.fullmatch(rf"({'|'.join(ORDER)})((\.\w+)+)", node.value):
                yield match.group(0)  # importlib.import_module("synth.x"), python -m synth.x
        elif isinstance(node, ast.List | ast.Tuple):
            words = [e.value for e in node.elts if isinstance(e, ast.Constant)]
            yield from (str(b) for a, b in pairwise(words) if a == "-m")


def sources(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def _is_protocol(module: str) -> bool:
    return module.startswith("offline_llm.server.")


@pytest.mark.parametrize("package", ORDER)
def test_a_package_imports_only_to_its_left(package: str) -> None:
    right = set(ORDER[ORDER.index(package) + 1 :])
    if package == "trainer":
        right |= {"offline_llm", "synth"}
    wrong = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in sources(package)
        for module in modules_named_in(path)
        if module.split(".")[0] in right
        and not str(path.relative_to(ROOT)).startswith(TRAINER_MAY_USE_SYNTH)
        and not (
            str(path.relative_to(ROOT)).startswith(SPEAKS_THE_PROTOCOL) and _is_protocol(module)
        )
    ]
    assert not wrong


@pytest.mark.parametrize(("library", "place"), ONLY_IN.items())
def test_heavy_libraries_stay_in_their_place(library: str, place: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {module}"
        for package in ORDER
        for path in sources(package)
        for module in modules_named_in(path)
        if module.split(".")[0] == library and not str(path.relative_to(ROOT)).startswith(place)
    ]
    assert not wrong


@pytest.mark.slow
def test_the_core_imports_without_prefect_kubernetes_and_torch() -> None:
    """And the gym, which comes first, without the libraries of mathematics that take seconds."""
    modules = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for package in ("records", "tool_specs", "sandboxes", "offline_llm", "synth")
        for path in sources(package)
        if ("kubernetes" not in path.parts or path.name == "settings.py")
        and "inside" not in path.parts  # programs that run inside a sandbox, not modules
    ]
    program = (
        "import sys, importlib\n"
        "for name in ('prefect', 'kubernetes', 'torch', 'datasets'): sys.modules[name] = None\n"
        "import synth.gym.registry\n"
        "assert not {'sympy', 'math_verify', 'reasoning_gym'} & set(sys.modules), 'heavy'\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
        "import flows.cli.main\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
