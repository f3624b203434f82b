"""The gate: a sound tool passes, and each kind of flaw is refused with its reason."""

import copy
import json
from typing import Any

import pytest

from tests.tool_specs.domains.test_taxonomy import small
from tool_specs.coverage.skeleton import semantics_key, skeleton_of
from tool_specs.domains.domain import Domain
from tool_specs.language.domain_file import ToolSpec
from tool_specs.validation.validate import validate_tools

EXTEND: dict[str, Any] = {
    "name": "extend_loan",
    "description": "Give a loan more days. Returns loan_id and days.",
    "params": {
        "loan_id": {"type": "string", "ref": "loan"},
        "more": {"type": "integer", "min": 1, "max": 30},
    },
    "semantics": [
        {"op": "read", "entity": "loan", "key": "args.loan_id", "as": "loan"},
        {
            "op": "require",
            "that": "loan.days + args.more <= 60",
            "error": "too_long",
            "message": "Sixty days at most.",
        },
        {"op": "update", "target": "loan", "set": {"days": "loan.days + args.more"}},
        {"op": "return", "value": {"loan_id": "loan.loan_id", "days": "loan.days"}},
    ],
}
LIST: dict[str, Any] = {
    "name": "list_loans",
    "description": "List the loans of at least some days. Returns loans.",
    "params": {"days": {"type": "integer", "min": 1, "max": 60}},
    "semantics": [
        {"op": "read", "entity": "loan", "where": "loan.days >= args.days", "as": "loans"},
        {"op": "return", "value": {"loans": "loans"}},
    ],
}


def proof_of(tool: dict[str, Any], **edits: Any):
    """Of the tool with statements replaced by position (`s1={...}`), or left out (None)."""
    tool = copy.deepcopy(tool)
    for place, statement in sorted(edits.items(), reverse=True):
        position = int(place.removeprefix("s"))
        tool["semantics"][position : position + 1] = [] if statement is None else [statement]
    return validate_tools(small(), [ToolSpec.model_validate(tool)])[tool["name"]]


@pytest.mark.parametrize("tool", [EXTEND, LIST])
def test_a_sound_tool_is_proved(tool):
    proof = proof_of(tool)
    assert proof.reason is None, proof.details
    assert proof.mutants > 0
    assert proof.example is not None
    assert bool(proof.example["diff"]) == (tool is EXTEND)


def require(that: str) -> dict[str, Any]:
    return {"op": "require", "that": that, "error": "refused", "message": "It cannot be."}


def update(**values: str) -> dict[str, Any]:
    return {"op": "update", "target": "loan", "set": values}


def answer(**values: str) -> dict[str, Any]:
    return {"op": "return", "value": values}


@pytest.mark.parametrize(
    ("tool", "edits", "reason"),
    [
        (EXTEND, {"s1": require("loan.age > 3")}, "does_not_compile"),
        (EXTEND, {"s1": require("loan.days > 1000")}, "never_succeeds"),
        (EXTEND, {"s2": update(days="loan.days + 0 * args.more")}, "changes_nothing"),
        (EXTEND, {"s1": require("loan.days + args.more > 0")}, "breaks_rule"),
        (EXTEND, {"s1": None}, "breaks_rule"),
        (EXTEND, {"s2": update(days="round(loan.days / (args.more - 1))")}, "internal_error"),
        (
            EXTEND,
            {"s2": update(days="loan.days + args.more", status="loan.status")},
            "dead_statement",
        ),
        (EXTEND, {"s3": answer(days="loan.days", until="loan.days")}, "dead_field"),
        (
            EXTEND,
            {"s1": require("loan.days + args.more <= 60 or 1 > 2"), "s3": answer(n="1")},
            "dead_term",
        ),
        (EXTEND, {"s3": answer(loan_id="loan.loan_id", n="1")}, "constant_result"),
        (LIST, {"s0": LIST["semantics"][0] | {"where": "args.days > 99"}}, "one_answer"),
        (LIST, {"s1": answer(days="args.days")}, "one_answer"),
        (
            LIST,
            {"s0": LIST["semantics"][0] | {"where": "loan.days >= args.days and loan.days > 0"}},
            "dead_filter",
        ),
    ],
)
def test_a_flaw_is_refused_with_its_reason(tool, edits, reason):
    proof = proof_of(tool, **edits)
    assert proof.reason == reason, proof.details
    assert bool(proof.details) == (reason is not None)


def test_an_error_that_never_happens_is_refused():
    tool = copy.deepcopy(EXTEND)
    tool["semantics"].insert(1, require("loan.days > 0"))
    proof = validate_tools(small(), [ToolSpec.model_validate(tool)])["extend_loan"]
    assert proof.reason == "error_not_reached"
    assert "semantics[1] refused never happened" in proof.details[0]


def test_a_proof_is_the_same_again_and_tools_are_proved_together():
    specs = [ToolSpec.model_validate(tool) for tool in (EXTEND, LIST)]
    assert validate_tools(small(), specs) == validate_tools(small(), specs)


def test_rows_that_nothing_uses_are_refused():
    tool = copy.deepcopy(EXTEND)
    tool["semantics"].insert(1, {"op": "read", "entity": "loan", "as": "others"})
    proof = validate_tools(small(), [ToolSpec.model_validate(tool)])["extend_loan"]
    assert proof.reason == "dead_statement"
    assert "semantics[1] (read loan)" in proof.details[0]


def renamed(text: str) -> str:
    for old, new in (("loan", "lease"), ("days", "weeks"), ("more", "extra"), ("borrower", "who")):
        text = text.replace(old, new)
    return text


def test_names_do_not_count_for_the_skeleton_and_wording_not_for_the_key():
    domain, spec = small(), ToolSpec.model_validate(EXTEND)
    other_file = type(domain.file).model_validate_json(
        renamed(domain.file.model_dump_json(by_alias=True, exclude_defaults=True))
    )
    other = ToolSpec.model_validate(json.loads(renamed(json.dumps(EXTEND))))
    assert skeleton_of(domain.file, spec) == skeleton_of(other_file, other)
    assert semantics_key(domain.file, spec) != semantics_key(other_file, other)
    reworded = json.loads(json.dumps(EXTEND).replace("more", "extra"))
    reworded |= {"name": "prolong", "description": "Prolong a loan, in other words."}
    assert semantics_key(domain.file, ToolSpec.model_validate(reworded)) == semantics_key(
        domain.file, spec
    )


def test_another_effect_is_another_skeleton():
    tool = copy.deepcopy(EXTEND)
    tool["semantics"][2]["set"] = {"days": "loan.days - args.more"}
    domain = small()
    one, other = ToolSpec.model_validate(EXTEND), ToolSpec.model_validate(tool)
    assert skeleton_of(domain.file, one) != skeleton_of(domain.file, other)


def test_the_domains_own_tools_take_part_without_being_proved():
    own = Domain.of(
        small().file.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        | {"tools": [EXTEND]},
        origin="own",
    )
    assert set(validate_tools(own, [ToolSpec.model_validate(LIST)])) == {"list_loans"}
