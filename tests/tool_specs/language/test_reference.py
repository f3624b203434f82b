"""The reference page: its examples answer as it says, and it leaves no form of the language out."""

import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from tool_specs.domains.domain import Domain
from tool_specs.domains.interpreter import DomainEnvironment
from tool_specs.language import expressions
from tool_specs.language.evaluation import FORMS
from tool_specs.language.functions import FUNCTIONS
from tool_specs.language.statements import AnyStatement
from tool_specs.language.syntax.tokens import COMPARISONS

PAGE = (Path(__file__).parents[3] / "docs" / "semantics.md").read_text()
TABLE = PAGE.split("| expression | value |")[1]
ROWS = re.findall(r"^\| `(.+)` \| `(.+)` \|$", TABLE, re.MULTILINE)


def block(name: str) -> str:
    found = re.search(rf"```\w+ {name}\n(.*?)\n```", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


def cinema(*tools: Any) -> Domain:
    return Domain.of(yaml.safe_load(block("domain")) | {"tools": list(tools)}, origin="cinema")


def test_the_calls_answer_as_the_page_says() -> None:
    environment = DomainEnvironment.of(cinema(*yaml.safe_load(block("tools"))))
    for line in block("calls").splitlines():
        call, _, answer = line.partition(" -> ")
        name, _, arguments = call.partition(" ")
        assert environment.call(name, json.loads(arguments)).observation == json.loads(answer), line


@pytest.mark.parametrize(("text", "value"), ROWS)
def test_an_expression_has_the_value_that_the_page_says(text: str, value: str) -> None:
    params = {"ticket_id": {"type": "string", "ref": "ticket"}} if "args" in text else {}
    reads = [
        {"op": "read", "entity": "ticket", "key": "'TK-1'", "as": "ticket"},
        {"op": "read", "entity": "ticket", "key": "'TK-2'", "as": "swapped"},
        {"op": "read", "entity": "ticket", "as": "tickets"},
    ]
    tool = {
        "name": "look",
        "description": "Looks at one thing.",
        "params": params,
        "semantics": [*reads, {"op": "return", "value": text}],
    }
    arguments = {"ticket_id": "TK-1"} if params else {}
    answer = DomainEnvironment.of(cinema(tool)).call("look", arguments).observation
    assert answer == json.loads(value)


def test_the_page_leaves_nothing_out() -> None:
    examples = " ".join(text for text, _ in ROWS)
    functions = [*FUNCTIONS, *FORMS, "now"]
    assert [name for name in functions if f"{name}(" not in examples] == []
    assert [sign for sign in COMPARISONS if f" {sign} " not in examples] == []
    models = get_args(get_args(AnyStatement)[0])
    ops = [op for model in models for op in get_args(model.model_fields["op"].annotation)]
    assert [op for op in ops if f"op: {op}," not in block("tools")] == []


def test_the_grammar_is_the_parsers() -> None:
    own = re.sub(r"^    ", "", expressions.__doc__ or "", flags=re.MULTILINE)
    assert block("grammar") in own
