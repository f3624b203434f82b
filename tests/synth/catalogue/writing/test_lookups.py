"""Look-ups that are written where a domain lacks them: they lead to the rows, and are proved."""

from pathlib import Path

import pytest
import yaml

from flows.cli.main import run
from records.digest import digest
from synth.catalogue.writing.lookups import lacking, written_lookups
from synth.tasks.composing import DomainTasks
from synth.tasks.forms.forms import ALL_PLAIN
from synth.tasks.goals.domain_tools import tools_of
from synth.tasks.goals.rules_seen import followable, hidden_fields
from synth.tasks.lengths import Complexity
from synth.tasks.proof.proving import UnprovedError
from tool_specs.domains.domain import Domain, load_domain
from tool_specs.domains.loading import parse_yaml
from tool_specs.domains.taxonomy import files_named
from tool_specs.validation.checking import check_domain

SHARES = Complexity(0.3, 0.4, 0.3)
READS = ("read", "return", "require", "let")


@pytest.fixture(params=["instrument_loans", "wildlife_rescue", "travel_expense_audit"])
def poor(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The file of a domain whose reads were taken out, all but one of them."""
    (path,) = files_named(request.param).values()
    content = parse_yaml(path.read_bytes(), origin=str(path))
    reads = [t for t in content["tools"] if all(s["op"] in READS for s in t["semantics"])]
    content["tools"] = [t for t in content["tools"] if t not in reads[1:]]
    mine = tmp_path / f"{request.param}.yaml"
    mine.write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=110))
    return mine


def shares_told_by_id(domain: Domain) -> float:
    """Of the rows that users name in plain tasks."""
    told = by_id = 0
    for number in range(12):
        tasks = DomainTasks(domain, set(domain.programs), forms=ALL_PLAIN)
        try:
            item = digest("by id", number)
            _, draft, _ = tasks.make(item, shares=SHARES, disclosure="mixed")
        except UnprovedError:
            continue
        for goal in draft.goals:
            for param in {fact.param for fact in goal.known}:
                facts = [fact for fact in goal.known if fact.param == param]
                if not param.endswith("_id"):
                    continue
                told += 1
                by_id += any(fact.label.endswith(" id") for fact in facts)
    return by_id / max(told, 1)


def test_every_kind_of_row_is_led_to_afterwards_and_said_in_words(poor, capsys):
    before = load_domain(poor)
    assert lacking(before)
    assert run(["domain", "lookups", str(poor)]) == 0
    after = load_domain(poor)
    assert "added" in capsys.readouterr().err
    assert not lacking(after)
    assert not hidden_fields(after)
    assert shares_told_by_id(after) < 0.2 < shares_told_by_id(before)
    assert len(followable(after, tools_of(after))) == len(after.programs)

    again = poor.read_text()
    assert run(["domain", "lookups", str(poor)]) == 0
    assert poor.read_text() == again


def test_what_is_written_is_proved_like_every_tool(poor):
    before = load_domain(poor)
    names = [tool.name for tool in written_lookups(before)]
    assert run(["domain", "lookups", str(poor)]) == 0
    report = check_domain(load_domain(poor))
    assert set(names) <= set(report.tools)
    for name in names:
        assert report.tools[name].read_only
        assert not [d.reason for d in report.tools[name].defects if d.reason != "dead_order"]


def test_the_same_domain_gets_the_same_tools(poor):
    domain = load_domain(poor)
    assert written_lookups(domain) == written_lookups(load_domain(poor))


@pytest.mark.parametrize("category", ["smart_home/*", "website_control/*"])
def test_nothing_is_left_to_write_for_domains_of_the_taxonomy(category):
    domains = [load_domain(path) for path in files_named(category).values()]
    assert any(domain.tools for domain in domains)
    for domain in domains:
        if domain.tools:
            assert written_lookups(domain) == []
