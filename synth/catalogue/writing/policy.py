"""Policy rules that a generator writes: asked for, tried on calls of their tools, mended."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from records.errors import ConfigError, ItemError
from synth.catalogue.evolution.asking import repair_step, shown
from synth.catalogue.proposals.examining import packed
from synth.catalogue.proposals.wire import WireError, wire_of
from synth.engine.executor import ShardExecutor
from synth.llm.client import LLM
from synth.prompts.templates import fenced, render
from tool_specs.domains.catalogue import domain_of_rows
from tool_specs.domains.domain import Domain
from tool_specs.domains.loading import checked
from tool_specs.language.domain_file import PolicyRule, ToolSpec
from tool_specs.language.statements import NAME
from tool_specs.validation.rules import rule_problems

PROMPT = "domain_policy"
REPAIR = "domain_policy_repair"
MAX_RULES = 8

RuleWire = dict[str, str]
"""`id`, `text`, `tool`, `forbids`."""

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


class RulesJob(NamedTuple):
    domain: bytes
    """As `packed` makes it, with its tools."""
    rules: tuple[RuleWire, ...]
    taken: tuple[str, ...]
    """Ids of rules that are there."""


class RuleFinding(NamedTuple):
    rule: RuleWire
    problems: tuple[str, ...]
    """Sentences for the model; none of a rule that can be used."""
    first_problems: tuple[str, ...] = ()
    """Of the rule before it was mended."""


def examine_rules(job: RulesJob) -> list[RuleFinding]:
    """A finding for each rule, in their order. Runs in worker processes."""
    data = json.loads(job.domain)
    domain = domain_of_rows(data["domain"], data["tools"])
    taken: set[str] = set(job.taken)
    problems: list[tuple[str, ...]] = []
    good: dict[int, PolicyRule] = {}
    for number, wire in enumerate(job.rules):
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
        RuleFinding(wire, tried.get(number, problems[number]))
        for number, wire in enumerate(job.rules)
    ]


async def write_rules(
    llm: LLM,
    executor: ShardExecutor,
    item: str,
    domain: Domain,
    *,
    count: int,
    repair_rounds: int,
) -> list[RuleFinding]:
    """What became of each rule that was written, mended ones as they are in the end. Empty where
    the generator gives no answer of use."""
    prompt = render(
        PROMPT,
        domain=fenced(shown(domain)),
        tools=[
            _shown_tool(tool) for tool in domain.tools if tool.name not in domain.file.user_tools
        ],
        wanted={"count": count},
    )
    try:
        rules = await _rules(llm, item, "policy", prompt.messages)
    except ItemError:
        return []
    packed_domain = packed(domain)
    findings = await executor.compute(examine_rules, RulesJob(packed_domain, tuple(rules), ()))
    for number in range(1, repair_rounds + 1):
        faulty = [finding for finding in findings if finding.problems]
        if not faulty:
            break
        problems = [{"rule": f.rule, "problems": list(f.problems)} for f in faulty]
        [message] = render(REPAIR, problems=problems).messages
        said = json.dumps({"rules": [f.rule for f in findings]}, ensure_ascii=False)
        talk = [*prompt.messages, {"role": "assistant", "content": said}, message]
        try:
            mended = await _rules(llm, item, f"policy_{repair_step(number)}", talk)
        except ItemError:
            break
        good = [finding for finding in findings if not finding.problems]
        again = RulesJob(packed_domain, tuple(mended), tuple(f.rule["id"] for f in good))
        findings = [*good, *_paired(faulty, await executor.compute(examine_rules, again))]
    return findings


def _paired(faulty: Sequence[RuleFinding], again: Sequence[RuleFinding]) -> list[RuleFinding]:
    """Mended rules, each with what was wrong with the one of its id, and those that nothing
    replaced."""
    before = {finding.rule["id"]: finding for finding in faulty}
    answered = {finding.rule["id"] for finding in again}
    left = iter([f for name, f in before.items() if name not in answered])
    found = []
    for finding in again:
        old = before.get(finding.rule["id"]) or next(left, None)
        first = (old.first_problems or old.problems) if old else ()
        found.append(finding._replace(first_problems=first))
    return [*found, *left]


def _shown_tool(tool: ToolSpec) -> Mapping[str, Any]:
    try:
        wire = wire_of(tool)
    except WireError:  # a hand-written tool may nest deeper than a model writes
        return {"name": tool.name, "description": tool.description}
    return {name: wire[name] for name in ("name", "description", "params", "semantics")}


async def _rules(llm: LLM, item: str, step: str, messages: list[dict[str, Any]]) -> list[RuleWire]:
    answer = await llm.structured(
        "generator", messages, item=item, step=step, name="rules", schema=RULES
    )
    return answer["rules"]
