"""Names: a public class or type is defined once, and retired words stand in no identifier.

The words that replace them stand in docs/glossary.md. Texts are not looked at: prompts, columns,
settings and reasons have names of their own, and those that Python code repeats are listed here.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("records", "tool_specs", "sandboxes", "offline_llm", "synth", "trainer", "flows")

RETIRED = {
    "breach": "policy violation",
    "hack": "unsupported-claim check",
    "misfit": "unsolvable variant, mismatch",
    "plant": "perturbation, perturbed negative",
    "reveal": "disclosure",
    "judge standing": "judge status",
    "template policy": "offline model",
    "wish": "user goal",
    "world": "environment, domain",
}
"""Word -> what is said instead."""

KEPT = {
    "breaches": "what extension files read of an episode",
    "wish": "key of server definitions, and of the goals that extension files read",
    "wishes": "variable of the prompt user",
    "wishes_again": "setting of the offline model's users",
    "without_breach": "key of an evaluation's scores",
    "world": "variable of the prompt simulate_call",
}
"""Identifier -> the stored or sent name that it repeats."""

ABOUT_REWRITES = ("synth.rephrasing", "trainer", "flows.rephrase")
"""Modules in which fidelity is the right word."""

COMMANDS = "flows.cli.commands"
"""The types of a command's parameters carry its help, and belong to that command."""


def modules() -> Iterator[tuple[str, ast.Module]]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            yield name.removesuffix(".__init__"), ast.parse(path.read_text())


MODULES = dict(modules())


@cache
def words_in() -> dict[tuple[str, str], str]:
    """(module, identifier in it) -> the identifier's words."""
    return {
        (module, name): words_of(name)
        for module, tree in MODULES.items()
        for name in (*identifiers(tree), *module.split("."))
    }


def types_of(tree: ast.Module) -> Iterator[str]:
    """Public classes and type aliases that a module defines at its top level."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


def is_type(name: str) -> bool:
    return name[0].isupper() and not name.isupper()


def identifiers(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.ClassDef(name=name) | ast.alias(asname=str(name)):
                yield name
            case ast.keyword(arg=str(name)):
                yield name


def words_of(identifier: str) -> str:
    """`JudgeStatus` and `judge_status` as ` judge status`."""
    parts = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", identifier).lower().split("_")
    return "".join(f" {part}" for part in parts if part)


def test_a_public_class_or_type_is_defined_once() -> None:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for module, tree in MODULES.items():
        if not module.startswith(COMMANDS):
            for name in types_of(tree):
                if is_type(name):
                    places[name].append(module)
    assert not {name: found for name, found in places.items() if len(found) > 1}


@pytest.mark.parametrize("word", RETIRED)
def test_a_retired_word_stands_in_no_identifier(word: str) -> None:
    found = {
        f"{module}: {name}"
        for (module, name), words in words_in().items()
        if f" {word}" in words and name not in KEPT
        if not (word == "fidelity" and module.startswith(ABOUT_REWRITES))
    }
    assert not found, f"say {RETIRED[word]}: {sorted(found)}"
