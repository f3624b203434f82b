"""A task names the grown seed that it starts from, and gets that one or an error."""

from typing import Any

import pytest

from records.errors import ConfigError
from tool_specs.domains.domain import Domain, load_domains
from tool_specs.domains.interpreter import DomainEnvironment
from tool_specs.growth.grown_seed import GROWN, GrownSeed, grown_seed_of


def shop() -> Domain:
    return load_domains(["web_shop"])[0]


def named(rows: int = 120) -> dict[str, Any]:
    name = GrownSeed(rows=rows)
    return name.named(shop().start(name))


def test_an_environment_starts_from_the_grown_seed_that_its_patch_names() -> None:
    domain = shop()
    gone = {"voucher": {"V-1001": None}}
    environment = DomainEnvironment.of(domain, {GROWN: named(), **gone})
    assert sum(len(environment.rows(name)) for name in domain.entities) == 119
    assert environment.get("customer", "S-1001") == domain.seed["customer"][0]
    assert DomainEnvironment.of(domain, {GROWN: named()}).state_hash == named()["hash"]
    assert DomainEnvironment.of(domain).state_hash == domain.seed_state.hash


def test_environments_on_one_grown_seed_are_independent() -> None:
    domain = shop()
    one, other = (DomainEnvironment.of(domain, {GROWN: named()}) for _ in range(2))
    call = {"customer_id": "S-1001", "amount": 5}
    before = other.state_hash
    results = [one.call(t.name, call) for t in domain.tools if set(t.params) == set(call)]
    one.state.put("voucher", "V-1001", None)
    one.state.commit()
    assert other.state_hash == before != one.state_hash
    assert all(result.hash_before == before for result in results[:1])


def test_a_domain_with_other_tools_grows_the_same() -> None:
    domain = shop()
    fewer = domain.with_tools(list(domain.programs.values())[:2])
    name = GrownSeed(rows=120)
    assert fewer.start(name) is domain.start(name)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"hash": "0" * 32}, "has the hash"),
        ({"version": 0}, "grown by version 0"),
        ({"rows": 5}, r"initial_state.\$grown.rows"),
        ({"split": "test"}, r"initial_state.\$grown.split"),
        ({"size": 5}, r"initial_state.\$grown.size"),
    ],
)
def test_another_seed_than_the_named_one_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        DomainEnvironment.of(shop(), {GROWN: named() | change})


def test_no_name_is_the_seed_of_the_file() -> None:
    assert grown_seed_of(None) is None
    assert grown_seed_of({"voucher": {}}) is None
