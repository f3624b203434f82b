"""What prompts teach is true: the examples compile and pass the gate, no function is left out."""

import json
import re
from pathlib import Path
from typing import get_args

from synth.catalogue.proposals.schemas import TOOLS
from synth.catalogue.proposals.wire import spec_of
from synth.prompts import templates as prompts
from tool_specs.domains.domain import load_domain
from tool_specs.language.evaluation import FORMS
from tool_specs.language.functions import FUNCTIONS
from tool_specs.language.schemas import Validator
from tool_specs.language.statements import AnyStatement, Statement
from tool_specs.validation.validate import validate_tools

TEXT = (prompts.FOLDER / "shared" / "semantics.md").read_text()
BOATS = Path(__file__).parent / "boat_hire.yaml"


def test_the_examples_fit_the_schema_and_pass_the_gate() -> None:
    tools = [json.loads(text) for text in re.findall(r"```json\n(.*?)\n```", TEXT, re.DOTALL)]
    assert len(tools) == 4
    assert Validator(TOOLS).problems({"tools": tools}) == []
    proofs = validate_tools(load_domain(BOATS), [spec_of(tool) for tool in tools])
    assert {name: proof.details for name, proof in proofs.items() if proof.reason} == {}


def test_every_function_is_taught() -> None:
    names = [*FUNCTIONS, *FORMS, "now"]
    assert [name for name in names if f"{name}(" not in TEXT] == []


def test_every_statement_is_taught_and_may_be_answered() -> None:
    ops = {op for model in get_args(get_args(AnyStatement)[0]) for op in _ops(model)}
    assert [op for op in sorted(ops) if f"`{op}`" not in TEXT] == []
    statement = TOOLS["properties"]["tools"]["items"]["properties"]["semantics"]["items"]
    assert set(statement["properties"]["op"]["enum"]) == ops


def _ops(model: type[Statement]) -> tuple[str, ...]:
    return get_args(model.model_fields["op"].annotation)
