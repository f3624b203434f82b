"""Domains of a run are known by their tools without being loaded, and by nothing that is stale."""

from pathlib import Path

import pytest
import yaml

from records.errors import ConfigError
from tests.tool_specs.conftest import BIKE_RENTAL
from tool_specs.domains import taxonomy
from tool_specs.domains.catalogue import domain_id, tool_ids
from tool_specs.domains.domain import BUILT_IN, built_domain, builtin_names
from tool_specs.domains.known import INDEX, KnownDomain, KnownDomains, index_text, known_domains


def names_of(*names: str) -> list[str]:
    return [domain.name for domain in known_domains(names)]


@pytest.fixture
def two_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A taxonomy of one domain with tools and one without, and the built-in ones."""
    folder = tmp_path / "smart_home"
    folder.mkdir()
    whole = yaml.safe_load(BIKE_RENTAL.read_text())
    bare = whole | {"domain": "bike_shed", "tools": [], "policy": [], "user_tools": []}
    for data in (whole, bare):
        (folder / f"{data['domain']}.yaml").write_text(yaml.safe_dump(data, sort_keys=False))
    monkeypatch.setattr(taxonomy, "TAXONOMY", tmp_path)


def test_the_index_is_what_loading_gives() -> None:
    stale = "index.json is stale; `make index` writes it"
    assert INDEX.read_text() == index_text(), stale


def test_a_domain_is_loaded_when_it_is_asked_for() -> None:
    built_domain.cache_clear()
    known = known_domains(["all"])
    domains = KnownDomains(known)
    assert domains.keys() == {one.domain_id for one in known}
    assert "no such id" not in domains
    assert built_domain.cache_info().misses == 0
    assert domains[known[0].domain_id].name == known[0].name
    assert built_domain.cache_info().misses == 1


def test_a_changed_file_is_what_it_says_now(tmp_path: Path) -> None:
    [packaged] = known_domains(["web_shop"])
    text = (BUILT_IN / "web_shop.yaml").read_text()
    path = tmp_path / "web_shop.yaml"
    path.write_text(text.replace("admin_find_customer", "admin_seek_customer"))
    known = KnownDomain.of(path)
    domain = known.load()
    assert "admin_seek_customer" in known.tools
    assert (known.domain_id, list(known.tools.values())) == (domain_id(domain), tool_ids(domain))
    assert known.tools["admin_seek_customer"] not in packaged.tools.values()
    path.write_text("domain: 7")
    assert known.load() is domain, "what was named is used, whatever the file holds later"
    with pytest.raises(ConfigError, match=r"web_shop\.yaml"):
        KnownDomain.of(path)


def test_all_and_patterns_mean_what_has_tools(two_more: None) -> None:
    assert names_of("builtin/*") == builtin_names()
    assert names_of("smart_home/*") == names_of("bike_*") == ["bike_rental"]
    assert names_of("all") == sorted(["bike_rental", *builtin_names()])
    assert names_of("web_shop", "builtin/*")[0] == "web_shop"
    assert sorted(names_of("web_shop", "builtin/*")) == builtin_names()


def test_a_domain_without_tools_says_how_it_gets_some(two_more: None, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'bike_shed' has no tools yet; `synth domain write"):
        known_domains(["bike_shed"])
    path = str(tmp_path / "smart_home" / "bike_shed.yaml")
    assert names_of(path) == ["bike_shed"], "who gives a file means it"


@pytest.mark.parametrize("name", ["no_such_place", "smart_homes/*"])
def test_an_unknown_name_or_pattern_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=r"the taxonomy has no"):
        known_domains([name])


def test_two_domains_of_one_name_are_refused(two_more: None) -> None:
    with pytest.raises(ConfigError, match="'bike_rental' is given twice"):
        known_domains(["all", str(BIKE_RENTAL)])
