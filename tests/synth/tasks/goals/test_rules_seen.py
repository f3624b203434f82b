"""No task hangs on a rule that the agent cannot look up."""

import json
from functools import cache

from records.digest import digest
from synth.tasks.composing import DomainTasks
from synth.tasks.goals.domain_tools import tools_of
from synth.tasks.goals.rules_seen import followable
from synth.tasks.goals.variants import VariantShares
from synth.tasks.proof.proving import UnprovedError
from tests.synth.task_cases import SHARES
from tool_specs.domains.domain import Domain
from tool_specs.domains.taxonomy import load_taxonomy, taxonomy_files

AGAINST = VariantShares.model_validate(
    dict.fromkeys(VariantShares.model_fields, 0.0) | {"against_policy": 0.5}
)


@cache
def world(name: str) -> Domain:
    [domain] = load_taxonomy([name])
    return domain


def test_a_rule_on_a_field_that_no_read_shows_cannot_be_followed() -> None:
    domain = world("arcade_floor")
    assert "args.redemption.card.tier" in domain.rules["refuse_prize"][0].spec.forbids
    tools = dict(tools_of(domain))
    assert "refuse_prize" in followable(domain, tools)
    shown_by = {n for n, tool in tools.items() if tool.read_only and n in reads_of("tier", domain)}
    assert shown_by
    without = {n: tool for n, tool in tools.items() if n not in shown_by}
    assert "refuse_prize" not in followable(domain, without)


def reads_of(field: str, domain: Domain) -> set[str]:
    """Tools whose answers name the field."""
    return {n for n, p in domain.programs.items() if f'"{field}"' in json.dumps(p.output_schema)}


def test_a_rule_can_be_followed_as_long_as_reads_show_its_fields() -> None:
    lost = 0
    for name in sorted(taxonomy_files())[::8]:
        domain = world(name)
        tools = dict(tools_of(domain))
        fair = followable(domain, tools)
        blind = followable(domain, {n: tool for n, tool in tools.items() if not tool.read_only})
        writers = {n for n, tool in tools.items() if not tool.read_only}
        assert blind.keys() <= fair.keys() & writers
        assert {n for n in writers if not domain.rules.get(n)} <= blind.keys()
        lost += len((fair.keys() & writers) - blind.keys())
    assert lost >= 10


def test_tasks_are_made_of_tools_whose_rules_the_agent_can_follow() -> None:
    made = kept_out = 0
    for name in sorted(taxonomy_files())[::16]:
        domain = world(name)
        tools = dict(tools_of(domain))
        fair = followable(domain, tools)
        kept_out += len(tools) - len(fair)
        if not fair:
            continue
        tasks = DomainTasks(domain, list(tools), variants=AGAINST)
        for i in range(6):
            try:
                _, draft, _ = tasks.make(
                    digest("followed", name, i), shares=SHARES, disclosure="mixed"
                )
            except UnprovedError:
                continue
            made += 1
            wanted = {goal.tool for goal in draft.goals if goal.tool in tools}
            assert {step.tool for step in draft.plan} | wanted <= fair.keys()
    assert made >= 30
    assert kept_out >= 1
