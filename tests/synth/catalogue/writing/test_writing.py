"""Domains are written by the offline model as an endpoint: files, ledger, and going on."""

import json
from pathlib import Path

import pytest

from flows.cli.main import run
from records.errors import ConfigError
from records.seeds import rng_of
from records.store.dataset import Dataset
from synth.catalogue.evolution.shapes import planned
from synth.catalogue.proposals.examining import packed
from synth.catalogue.writing.config import WriteConfig, files_of
from synth.catalogue.writing.parts import PartsJob
from synth.catalogue.writing.policy import examine_rules
from synth.catalogue.writing.stage import plans_of
from tests.synth.catalogue.evolution.boats import BOATS
from tool_specs.domains.domain import load_domain
from tool_specs.domains.taxonomy import load_taxonomy
from tool_specs.validation.checking import check_domain


def written(*words: str, capsys: pytest.CaptureFixture[str]) -> list[dict]:
    assert run(["domain", "write", *words, "--json"]) == 0
    out = capsys.readouterr().out
    return json.loads(out[out.index("[") :])


@pytest.fixture
def boats(tmp_path: Path) -> Path:
    path = tmp_path / "boat_hire.yaml"
    path.write_text(f"# a comment that stays\n{BOATS.read_text()}")
    return path


def test_a_domain_gets_tools_and_rules_that_prove_and_nothing_is_asked_twice(
    boats: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = str(tmp_path / "data")
    options = [str(boats), "--tools", "6", "--dataset", data, "--set", "policy_rules=2"]
    copy = tmp_path / "out" / "copy.yaml"
    [to_copy] = written(*options, "--out", str(copy), capsys=capsys)
    calls = len(Dataset.open(Path(data)).rows("llm_calls"))
    [found] = written(*options, capsys=capsys)
    assert len(Dataset.open(Path(data)).rows("llm_calls")) == calls
    assert found | {"file": str(copy)} == to_copy
    assert copy.read_text() == boats.read_text()
    domain = load_domain(boats)
    assert boats.read_text().startswith("# a comment that stays\n")
    before = load_domain(BOATS)
    assert (found["tools"], found["rules"]) == (
        len(domain.tools) - len(before.tools),
        len(domain.policy) - len(before.policy),
    )
    assert found["tools"] >= 1
    assert len(found["left_out"]) + found["tools"] + found["rules"] >= 6
    assert check_domain(domain).problems == []


def test_a_file_that_lacks_nothing_costs_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    assert written("clinic_desk", "--tools", "5", "--dataset", str(data), capsys=capsys) == []
    assert not data.exists()


def test_rules_are_examined_one_by_one() -> None:
    (clinic,) = load_taxonomy(["clinic_desk"])
    own = clinic.policy[1]
    good = {"id": "a", "text": own.text, "tool": str(own.tool), "forbids": own.forbids}
    wires = (good, good, good | {"id": "b", "forbids": "nonsense("}, good | {"id": "taken"})
    found = examine_rules(PartsJob(packed(clinic), wires, (good | {"id": "taken"},)))
    assert [bool(finding.problems) for finding in found] == [False, True, True, True]
    assert "is taken" in found[1].problems[0]


def test_patterns_mean_categories_and_unknown_names_are_refused() -> None:
    homes = files_of(WriteConfig(domains=("smart_home/*",)))
    assert "aquarium_keeper" in homes
    assert {path.parent.name for path in homes.values()} == {"smart_home"}
    with pytest.raises(ConfigError, match="no 'smart_homes"):
        files_of(WriteConfig(domains=("smart_homes/*",)))


def test_what_is_asked_hangs_on_the_file_and_not_on_the_other_domains() -> None:
    alone = plans_of(WriteConfig(domains=("aquarium_keeper",)))
    among = plans_of(WriteConfig(domains=("smart_home/*",)))
    assert {plan.item_id for plan in alone} <= {plan.item_id for plan in among}


def test_the_plan_has_reading_changing_and_listing_tools_and_some_without_parameters() -> None:
    domains = load_taxonomy(["aquarium_keeper", "court_registry", "ambulance_room", "bus_duties"])
    plans = [t for d in domains for t in planned(d, [], 12, rng_of(d.name, "test"))]
    assert len(plans) == 12 * len(domains)
    for words in ("search or list", "look one up", "make one", "move one on", "figures over many"):
        assert any(words in plan.aim for plan in plans)
    bare = [plan for plan in plans if plan.shape == "no parameters"]
    assert 0.05 < len(bare) / len(plans) < 0.25
