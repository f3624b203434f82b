"""The template policy is general: it knows no tool, domain or entity, and it stays small."""

import ast
import io
import re
import tokenize
from pathlib import Path

from sandboxes.servers import builtin_servers
from tool_specs.domain import load_domains

FOLDER = Path(__file__).parents[3] / "synth" / "offline"
EVERYDAY = frozenset(
    ["client", "customer", "item", "member", "part", "person", "repair", "return", "van"]
)
"""Entity names that are everyday words and stand in a literal for what they mean in English."""
MAX_LINES_A_FILE = 300
MAX_LINES = 3500


def names_of_the_catalogue() -> set[str]:
    names: set[str] = set()
    for domain in load_domains():
        names |= {domain.name, *domain.entities, *(tool.name for tool in domain.tools)}
    for server in builtin_servers().values():
        names |= {call.tool for goal in server.goals for call in goal.calls}
    return names


def docstrings(tree: ast.AST) -> set[int]:
    """Identities of the nodes that are docstrings, of modules, functions and attributes."""
    return {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def literals() -> list[tuple[str, str]]:
    """(file, text) of every string literal that is no docstring, f-string parts included."""
    found = []
    for path in sorted(FOLDER.glob("*.py")):
        tree = ast.parse(path.read_text())
        skipped = docstrings(tree)
        found += [
            (path.name, node.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in skipped
        ]
    return found


def lines_of_code(path: Path) -> int:
    """Lines that hold code: tables count, blank lines, comments and docstrings do not."""
    text = path.read_text()
    inside = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    empty = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    held: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in empty and token.type != tokenize.ENDMARKER:
            held |= set(range(token.start[0], token.end[0] + 1))
    return len(held - inside)


def test_no_literal_names_a_tool_a_domain_or_an_entity() -> None:
    pattern = re.compile(
        r"(?<![a-z_])(" + "|".join(sorted(names_of_the_catalogue())) + r")s?(?![a-z_])",
        re.IGNORECASE,
    )
    named = {
        (match.group(1).lower(), file)
        for file, text in literals()
        for match in pattern.finditer(text)
    }
    assert {word for word, _ in named} <= EVERYDAY, sorted(
        pair for pair in named if pair[0] not in EVERYDAY
    )
    assert len(EVERYDAY) <= 30


def test_each_module_and_all_of_them_stay_small() -> None:
    sizes = {path.name: lines_of_code(path) for path in FOLDER.glob("*.py")}
    assert {name: n for name, n in sizes.items() if n > MAX_LINES_A_FILE} == {}
    assert sum(sizes.values()) <= MAX_LINES
