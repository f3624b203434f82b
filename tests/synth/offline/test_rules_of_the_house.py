"""What keeps the provider honest: it knows no tool, domain or entity, and it stays small."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import yaml

import sandboxes
import synth.offline
import tool_specs
from sandboxes.workspace import TOOLS as WORKSPACE_TOOLS
from synth.coding.worlds import code_worlds

FOLDER = Path(synth.offline.__file__).parent
DOMAINS = Path(tool_specs.__file__).parent / "domains"
SERVERS = Path(sandboxes.__file__).parent / "servers"
MAX_LINES_OF_A_MODULE, MAX_LINES = 300, 3500
TOOLS = FOLDER / "tools"
CODE_WORDS = ("generator_issue.py",)
MANNER, MAX_LINES_OF_MANNER = "judge_manner.py", 130
"""What the judge knows of manners, counted by itself: none of it is for playing a part."""

MAX_LINES_OF_TOOLS = 6000
"""Of the grammar of tools, which is counted by itself: about ninety patterns and four operators,
each a short function. The roles that answer in a conversation stay within `MAX_LINES`."""

MAX_LINES_OF_CODE = 900
"""Of the job of mending code, counted by itself too: reading test runs and thinking of repairs has
nothing in common with the talk about forms and records that the other roles are made for."""

USER_CONTROL = ("dual_control.py", "user_slips.py")
MAX_LINES_OF_USER_CONTROL = 400
"""Of the user's faults, made to measure who finds them, and of what it does with tools of its own:
neither is needed to answer in a conversation."""

MAX_LINES_OF_WORLDS = 650
"""Of standing in for tools (`world_*.py`), counted by itself too: it is no part of a conversation,
but reads declarations and rows."""

UNCLEAR, MAX_LINES_OF_UNCLEAR = "unclear.py", 60
"""Of asking back what an unclear request means, which came after the budget was spent."""

MAX_LINES_OF_REWRITING = 1100
"""Of rewriting texts (`rewriter*.py`), counted by itself: grammar and forms, no conversation."""

CLAIMS, MAX_LINES_OF_CLAIMS = "claims_judge.py", 80
"""Of judging whether one text says what another one says: no conversation either."""

CLUMSY, MAX_LINES_OF_CLUMSY = ("clumsy.py", "clumsy_rates.py"), 90
"""Of what a small model does wrong, counted by itself: only data for a small student needs it."""

EVERYDAY_WORDS = frozenset(
    ["client", "customer", "issue", "member", "order", "part", "person", "repair"]
) | {"return", "room", "time", "van"}
"""Words of ordinary English that happen to be an entity or the like in some domain; `van` as in
`van Dyke`. At most 30."""


def names_of_the_catalogue() -> set[str]:
    """Tools, domains, entities and servers, as the words they are made of."""
    names: set[str] = set()
    for path in DOMAINS.glob("*.yaml"):
        domain = yaml.safe_load(path.read_text())
        names |= {domain["domain"], *domain["entities"], *(t["name"] for t in domain["tools"])}
    for path in SERVERS.glob("*.yaml"):
        server = yaml.safe_load(path.read_text())
        called = [call["tool"] for goal in server["goals"] for call in goal["calls"]]
        names |= {server["name"], *called, *server["samples"]}
    names |= {tool.name for tool in WORKSPACE_TOOLS} | code_worlds(["all"]).keys()
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


def test_no_literal_names_a_tool_a_domain_or_an_entity() -> None:
    names = names_of_the_catalogue()
    assert len(names) > 100
    assert len(EVERYDAY_WORDS) <= 30
    found: dict[str, list[str]] = {}
    for path in sorted(FOLDER.rglob("*.py")):
        for line, text in literals(path):
            words = " ".join(re.findall(r"[a-z0-9]+", text.lower().replace("_", " ")))
            for name in names:
                if f" {name} " in f" {words} ":
                    found.setdefault(name, []).append(f"{path.name}:{line}")
    assert {name: places for name, places in found.items() if name not in EVERYDAY_WORDS} == {}
    assert found.keys() == EVERYDAY_WORDS, "an allowed word that nothing needs any more"


def test_modules_and_the_whole_stay_small() -> None:
    lines = {path: len(path.read_text().splitlines()) for path in FOLDER.rglob("*.py")}
    assert {path.name: n for path, n in lines.items() if n > MAX_LINES_OF_A_MODULE} == {}
    of_tools = sum(n for path, n in lines.items() if path.parent == TOOLS)
    assert of_tools <= MAX_LINES_OF_TOOLS
    of_code = sum(n for path, n in lines.items() if path.name.startswith(("code_", *CODE_WORDS)))
    assert of_code <= MAX_LINES_OF_CODE
    of_users = sum(n for path, n in lines.items() if path.name in USER_CONTROL)
    assert of_users <= MAX_LINES_OF_USER_CONTROL
    of_worlds = sum(n for path, n in lines.items() if path.name.startswith("world_"))
    assert of_worlds <= MAX_LINES_OF_WORLDS
    of_unclear = sum(n for path, n in lines.items() if path.name == UNCLEAR)
    assert of_unclear <= MAX_LINES_OF_UNCLEAR
    of_manner = sum(n for path, n in lines.items() if path.name == MANNER)
    assert of_manner <= MAX_LINES_OF_MANNER
    of_claims = sum(n for path, n in lines.items() if path.name == CLAIMS)
    assert of_claims <= MAX_LINES_OF_CLAIMS
    of_clumsy = sum(n for path, n in lines.items() if path.name in CLUMSY)
    assert of_clumsy <= MAX_LINES_OF_CLUMSY
    of_rewriting = sum(n for path, n in lines.items() if path.name.startswith("rewriter"))
    assert of_rewriting <= MAX_LINES_OF_REWRITING
    apart = (
        of_tools
        + of_code
        + of_users
        + of_worlds
        + of_unclear
        + of_manner
        + of_rewriting
        + of_claims
        + of_clumsy
    )
    assert sum(lines.values()) - apart <= MAX_LINES
