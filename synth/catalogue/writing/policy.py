"""Policy rules that a generator writes: what is asked, and how rules are tried on calls."""

import json
from collections.abc import Mapping
from typing import Any

from records.errors import ConfigError
from synth.catalogue.evolution.asking import shown
from synth.catalogue.proposals.wire import WireError, wire_of
from synth.catalogue.writing.parts import PartFinding, PartKind, PartsJob
from synth.prompts.templates import fenced
from tool_specs.domains.catalogue import domain_of_rows
from tool_specs.domains.domain import Domain
from tool_specs.domains.loading import checked
from tool_specs.language.domain_file import PolicyRule, ToolSpec
from tool_specs.language.statements import NAME
from tool_specs.validation.rules import rule_problems

MAX_RULES = 8

_RULE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "pattern": NAME, "description": "Snake case."},
        "text": {
            "type": "string",
            "minLength": 20,
            "maxLength": 400,
            "description": "What the agent must not do, and what it does instead.",
        },
        "tool": {"type": "string", "maxLength": 64, "description": "Name of the tool it binds."},
        "forbids": {
            "type": "string",
            "minLength": 1,
            "maxLength": 600,
            "description": "Expression: a call of the tool breaks the rule when this holds.",
        },
    },
    "required": ["id", "text", "tool", "forbids"],
    "additionalProperties": False,
}

RULES: dict[str, Any] = {
    "type": "object",
    "properties": {"rules": {"type": "array", "items": _RULE, "maxItems": MAX_RULES}},
    "required": ["rules"],
    "additionalProperties": False,
}
"""Answer named `rules`."""


def examine_rules(job: PartsJob) -> list[PartFinding]:
    """A finding for each rule, in their order. Runs in worker processes."""
    data = json.loads(job.domain)
    domain = domain_of_rows(data["domain"], data["tools"])
    taken: set[str] = {rule["id"] for rule in job.good}
    problems: list[tuple[str, ...]] = []
    good: dict[int, PolicyRule] = {}
    for number, wire in enumerate(job.parts):
        problems.append(() if wire["id"] not in taken else (f"id: {wire['id']!r} is taken",))
        taken.add(wire["id"])
        if problems[number]:
            continue
        try:
            good[number] = checked(PolicyRule, wire, origin="")
        except ConfigError as error:
            problems[number] = tuple(line.removeprefix(": ") for line in str(error).splitlines())
    found = rule_problems(domain, list(good.values()))
    tried = dict(zip(good, found, strict=True))
    return [
        PartFinding(wire, tried.get(number, problems[number]))
        for number, wire in enumerate(job.parts)
    ]


def rules_values(domain: Domain, count: int) -> dict[str, Any]:
    """What the prompt shows and asks for."""
    theirs = domain.file.user_tools
    return {
        "domain": fenced(shown(domain)),
        "tools": [_shown_tool(tool) for tool in domain.tools if tool.name not in theirs],
        "wanted": {"count": count},
    }


def _shown_tool(tool: ToolSpec) -> Mapping[str, Any]:
    try:
        wire = wire_of(tool)
    except WireError:  # a hand-written tool may nest deeper than a model writes
        return {"name": tool.name, "description": tool.description}
    return {name: own for name, own in wire.items() if name != "parent"}


RULE_KIND = PartKind(
    "rules", "rule", "id", "policy", "domain_policy", "domain_policy_repair", RULES, examine_rules
)
