"""What keeps the offline model honest: it knows no tool, domain or entity, and it stays small."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import yaml

import offline_llm
import sandboxes
import tool_specs
from sandboxes.code.workspace import TOOLS as WORKSPACE_TOOLS
from synth.episode.tools.code_environments import code_environments

FOLDER = Path(offline_llm.__file__).parent
DOMAINS = Path(tool_specs.__file__).parent / "domains" / "builtin"
SERVERS = Path(sandboxes.__file__).parent / "mcp" / "servers"
MAX_LINES_OF_A_MODULE = 300
MAX_LINES = 12_945
"""Of the whole package: what it had when it became one, the head of `server/http.py`, which the
server of trained models shares, and two roles that nothing there could play, the attacker and the
judge of safety training. What is added replaces something."""

EVERYDAY_WORDS = frozenset(
    ["claim", "client", "customer", "issue", "member", "order", "part", "person", "repair"]
) | {"return", "time", "van"}
"""Words of ordinary English that happen to be an entity or the like in some domain; `van` as in
`van Dyke`. At most 30."""


def names_of_the_catalogue() -> set[str]:
    """Tools, domains, entities and servers, as the words they are made of."""
    names: set[str] = set()
    for path in DOMAINS.glob("*.yaml"):
        domain = yaml.load(path.read_text(), yaml.CSafeLoader)
        names |= {domain["domain"], *domain["entities"], *(t["name"] for t in domain["tools"])}
    for path in SERVERS.glob("*.yaml"):
        server = yaml.load(path.read_text(), yaml.CSafeLoader)
        called = [call["tool"] for goal in server["goals"] for call in goal["calls"]]
        names |= {server["name"], *called, *server["samples"]}
    names |= {tool.name for tool in WORKSPACE_TOOLS} | code_environments(["all"]).keys()
    return {name.replace("_", " ") for name in names}


def literals(path: Path) -> Iterator[tuple[int, str]]:
    """Every string of a module but its docstrings, which no code reads."""
    tree = ast.parse(path.read_text())
    documentation = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in documentation:
            yield node.lineno, str(node.value)


def runs_of_words(text: str, longest: int) -> set[str]:
    """Every run of up to `longest` words of the text."""
    words = re.findall(r"[a-z0-9]+", text.lower().replace("_", " "))
    return {
        " ".join(words[start : start + length])
        for length in range(1, longest + 1)
        for start in range(len(words) - length + 1)
    }


def test_no_literal_names_a_tool_a_domain_or_an_entity() -> None:
    names = names_of_the_catalogue()
    assert len(names) > 100
    assert len(EVERYDAY_WORDS) <= 30
    longest = max(name.count(" ") + 1 for name in names)
    found: dict[str, list[str]] = {}
    for path in sorted(FOLDER.rglob("*.py")):
        for line, text in literals(path):
            for name in names & runs_of_words(text, longest):
                found.setdefault(name, []).append(f"{path.name}:{line}")
    assert {name: places for name, places in found.items() if name not in EVERYDAY_WORDS} == {}
    assert found.keys() == EVERYDAY_WORDS, "an allowed word that nothing needs any more"


def test_modules_and_the_whole_stay_small() -> None:
    lines = {path: len(path.read_text().splitlines()) for path in FOLDER.rglob("*.py")}
    assert {path.name: n for path, n in lines.items() if n > MAX_LINES_OF_A_MODULE} == {}
    assert sum(lines.values()) <= MAX_LINES
