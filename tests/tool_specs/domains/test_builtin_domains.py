"""The built-in domains: each is proved by a walk, and offers what tasks are searched from."""

import json
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import pytest

from records.seeds import rng_of
from tool_specs.domains.domain import Domain, builtin_names, load_domains
from tool_specs.domains.interpreter import DomainEnvironment, policy_violations
from tool_specs.language.domain_file import ParamSpec
from tool_specs.validation.checking import check_domain
from tool_specs.validation.drawing import draw_arguments

NAMES = builtin_names()


@lru_cache(maxsize=1)
def domains() -> dict[str, Domain]:
    return {domain.name: domain for domain in load_domains(NAMES)}


@pytest.mark.parametrize("name", NAMES)
def test_the_walk_proves_the_domain(name: str) -> None:
    assert check_domain(domains()[name]).problems == []


def test_twelve_categories_two_held_out() -> None:
    assert len(NAMES) == len({d.category for d in domains().values()}) == 12
    assert sum(d.split == "heldout_domain" for d in domains().values()) == 2


def test_no_tool_name_stands_in_two_domains() -> None:
    names = Counter(tool.name for domain in domains().values() for tool in domain.tools)
    assert {name for name, count in names.items() if count > 1} == set()


@pytest.mark.parametrize("name", NAMES)
def test_tools_are_many_and_nearly_half_of_them_only_read(name: str) -> None:
    domain = domains()[name]
    programs = [p for n, p in domain.programs.items() if n not in domain.file.user_tools]
    assert 9 <= len(programs) <= 12
    assert 0.3 <= sum(p.read_only for p in programs) / len(programs) <= 0.6


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_is_described(name: str) -> None:
    for tool in domains()[name].tools:
        for path, param in _params(tool.params):
            assert param.description, f"{tool.name}.{path}"


@pytest.mark.parametrize("name", NAMES)
def test_natural_fields_lead_to_ids_of_what_write_tools_take(name: str) -> None:
    """Most rows: one that no listing shows (a slot that is taken) needs no tool."""
    domain = domains()[name]
    for entity in _written_refs(domain):
        rows = domain.seed[entity]
        found = [row for row in rows if _found(domain, entity, row)]
        assert 2 * len(found) >= len(rows) > 0, entity


@pytest.mark.parametrize("name", NAMES)
def test_rules_forbid_something_always_and_something_sometimes(name: str) -> None:
    domain = domains()[name]
    always = [rule for rule in domain.policy if rule.tool and rule.forbids == "true"]
    sometimes = [rule for rule in domain.policy if rule.tool and rule.forbids != "true"]
    assert always
    assert sometimes
    for rule in sometimes:
        assert _outcomes(domain, rule.id, str(rule.tool)) == {True, False}, rule.id


def _params(params: dict[str, ParamSpec], path: str = "") -> Iterator[tuple[str, ParamSpec]]:
    """Every parameter, members of objects in arrays too."""
    for name, param in params.items():
        yield f"{path}{name}", param
        inner = param.items or param
        yield from _params(inner.properties or {}, f"{path}{name}.")


def _written_refs(domain: Domain) -> set[str]:
    """Entities whose ids the write tools take."""
    refs: set[str] = set()
    for tool in domain.tools:
        if not domain.programs[tool.name].read_only:
            for _, param in _params(tool.params):
                inner = param.items or param
                refs |= {inner.ref} if inner.ref else set()
    return refs


def _found(domain: Domain, entity: str, row: dict[str, Any]) -> bool:
    """Whether a read tool given the row's natural fields, and no other value, shows its id."""
    spec = domain.entities[entity]
    known = {field: row[field] for field in spec.natural}
    for field in spec.natural:  # the key of another row by which this one is known
        known |= {domain.entities[to].key: row[field] for to in [spec.fields[field].to] if to}
    for tool in domain.tools:
        if domain.programs[tool.name].read_only:
            arguments = {p: known[p] for p in tool.params if known.get(p) is not None}
            answer = DomainEnvironment.of(domain).call(tool.name, arguments)
            if arguments and not answer.is_error and row[spec.key] in _texts(answer.observation):
                return True
    return False


def _texts(value: Any) -> set[str]:
    """Every text in an observation."""
    if isinstance(value, dict | list):
        items = value.values() if isinstance(value, dict) else value
        return set().union(*map(_texts, items)) if items else set()
    return {value} if isinstance(value, str) else set()


def _outcomes(domain: Domain, rule: str, tool: str) -> set[bool]:
    """Whether calls that succeed on the seed breach the rule: both, for a rule that decides."""
    seen: set[bool] = set()
    rng = rng_of(json.dumps([domain.name, rule]), "rule", 0)
    for _ in range(600):
        environment = DomainEnvironment.of(domain)
        arguments = draw_arguments(environment, tool, rng)
        if arguments is None:
            continue
        violated = rule in policy_violations(environment, tool, arguments)
        if violated not in seen and not environment.call(tool, arguments).is_error:
            seen.add(violated)
        if len(seen) == 2:
            break
    return seen
