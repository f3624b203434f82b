"""Grown seeds keep what their domain says, at every size: fields, references, rules, ids, names.

The file's own rows stay as they are, and the same arguments grow the same rows.
"""

from collections.abc import Iterable
from functools import lru_cache

import pytest

from records.errors import ConfigError
from records.tables.splits import Split
from tool_specs.domains.domain import Domain, builtin_names, load_domains
from tool_specs.domains.loading import parse_yaml
from tool_specs.domains.seed_rows import check_refs
from tool_specs.domains.taxonomy import TAXONOMY, load_taxonomy, taxonomy_files
from tool_specs.execution.fields import RowCheck
from tool_specs.execution.invariants import broken_in
from tool_specs.execution.programs import Problems
from tool_specs.execution.state import State
from tool_specs.growth.growing import GrownRows, grow
from tool_specs.growth.grown_seed import GrownSeed
from tool_specs.growth.summary import ambiguous_keys, num_alike, summary_of, top_tenth_share

SOME = [*builtin_names(), *sorted(p.stem for p in TAXONOMY.glob("*/*.yaml"))[::16]]
"""Every built-in domain, and one of sixteen of the others."""

LARGER = ["web_shop", "clinic_desk", "laundry_room", "bond_auction", "group_chat", "site_deploys"]

SHOP = """
domain: shop
title: Shop
category: software_apps
description: A shop.
now: "2026-03-02T09:00:00"
entities:
  article:
    key: article_id
    prefix: A-
    natural: [name]
    fields:
      article_id: {type: string}
      name: {type: string}
      price: {type: number, min: 0}
      sales: {type: integer, min: 0}
  sale:
    key: sale_id
    prefix: S-
    natural: [article_id, sold_at]
    fields:
      sale_id: {type: string}
      article_id: {type: ref, to: article}
      pieces: {type: integer, min: 1}
      cost: {type: number, min: 0}
      sold_at: {type: datetime}
      packed_at: {type: datetime, optional: true}
rules:
  - id: packed_later
    entity: sale
    that: sale.packed_at == null or sale.packed_at > sale.sold_at
    text: What is packed was sold before.
seed:
  article:
    - [A-1001, Blue lamp, 19.99, 2]
    - [A-1002, Green lamp, 24.99, 1]
    - [A-1003, Wool rug, 149.99, 3]
    - [A-1004, Silk rug, 480, 0]
  sale:
    - [S-1001, A-1001, 1, 19.99, "2026-02-02T10:00:00", "2026-02-03T11:30:00"]
    - [S-1002, A-1001, 3, 59.97, "2026-02-11T15:00:00", "2026-02-12T09:00:00"]
    - [S-1003, A-1002, 2, 49.98, "2026-02-19T16:30:00", "2026-02-20T10:30:00"]
    - [S-1004, A-1003, 1, 149.99, "2026-02-25T12:00:00", "2026-02-26T12:30:00"]
    - [S-1005, A-1003, 4, 599.96, "2026-02-27T09:30:00", null]
    - [S-1006, A-1003, 2, 299.98, "2026-02-27T11:00:00", null]
"""


def grown(domain: Domain, rows: int, number: int = 0, split: Split = "train") -> GrownRows:
    seed, rules = domain.seed_state, domain.invariants
    return grow(domain.file, seed, rules, rows=rows, number=number, split=split)


@lru_cache(maxsize=4)
def shop() -> Domain:
    return Domain.of(parse_yaml(SHOP.encode(), origin="shop"), origin="shop")


def problems_of(domain: Domain, found: GrownRows) -> Iterable[str]:
    """Everything that a domain's own seed would be refused for."""
    state = State.of(found.rows, domain.now)
    for name, entity in domain.entities.items():
        check = RowCheck(entity)
        for key, row in found.rows[name].items():
            assert check.row(row) == row
            assert row[entity.key] == key
        problems = Problems()
        check_refs(state, name, entity, domain.name, found.rows[name].values(), problems)
        yield from problems.found
        of_seed = {row[entity.key] for row in domain.seed[name]}
        for key in ambiguous_keys(entity, list(found.rows[name].values())) & of_seed:
            yield f"{name} {key} of the seed is ambiguous"
    yield from (
        f"{path} {words}" for path, words in broken_in(state, domain.file, domain.invariants)
    )


def check(domain: Domain, rows: int) -> GrownRows:
    found = grown(domain, rows)
    assert list(problems_of(domain, found)) == []
    for name, own in domain.seed.items():
        assert list(found.rows[name].values())[: len(own)] == own
    size = sum(map(len, found.rows.values()))
    assert size == max(rows, sum(map(len, domain.seed.values())))
    return found


@pytest.mark.parametrize("name", SOME)
def test_a_grown_seed_has_its_size_and_keeps_what_the_domain_says(name: str) -> None:
    (domain,) = load_taxonomy([name])
    check(domain, 10)
    check(domain, 150)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(taxonomy_files())[::4])
def test_domains_of_every_category_grow(name: str) -> None:
    (domain,) = load_taxonomy([name])
    check(domain, 200)


@pytest.mark.scale
@pytest.mark.parametrize("name", sorted(taxonomy_files()))
def test_every_domain_grows(name: str) -> None:
    (domain,) = load_taxonomy([name])
    check(domain, 200)


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGER)
def test_larger_seeds_keep_what_the_domain_says(name: str) -> None:
    (domain,) = load_taxonomy([name])
    check(domain, 2000)


@pytest.mark.scale
@pytest.mark.parametrize("name", LARGER[:3])
def test_ten_thousand_rows_keep_what_the_domain_says(name: str) -> None:
    (domain,) = load_taxonomy([name])
    check(domain, 10_000)


def test_a_grown_state_has_the_domains_clock() -> None:
    domain = shop()
    assert domain.start(GrownSeed(rows=100, number=1, split="train")).now == domain.now


def test_the_same_name_grows_the_same_rows_and_another_others() -> None:
    domain = shop()
    first = grown(domain, 200, 1).rows
    assert grown(domain, 200, 1).rows == first
    others = grown(domain, 200, 2).rows
    assert others != first
    assert others["article"].keys() & first["article"].keys()


def test_what_is_computed_in_the_seed_is_computed_in_grown_rows() -> None:
    """The cost is pieces times price, and an article counts its sales."""
    rows = check(shop(), 300).rows
    for row in rows["sale"].values():
        price = rows["article"][row["article_id"]]["price"]
        assert row["cost"] == pytest.approx(row["pieces"] * price)
    sold = [row["article_id"] for row in rows["sale"].values()]
    assert {k: row["sales"] for k, row in rows["article"].items()} == {
        key: sold.count(key) for key in rows["article"]
    }
    assert len({row["price"] for row in rows["article"].values()}) > 10


def test_prices_end_like_those_of_the_seed_and_nights_stay_closed() -> None:
    rows = check(shop(), 300).rows
    prices = [row["price"] for row in rows["article"].values()]
    assert sum(f"{price:.2f}".endswith(".99") for price in prices) > len(prices) / 2
    assert all("09:30" <= row["sold_at"][11:16] <= "16:30" for row in rows["sale"].values())
    assert all(row["sold_at"] < "2026-03-02T09:00:00" for row in rows["sale"].values())


def test_few_rows_are_referred_to_by_many() -> None:
    (domain,) = load_domains(["web_shop"])
    rows = grown(domain, 1500).rows
    share = top_tenth_share("customer", domain.file, State.of(rows))
    assert share is not None
    assert share > 0.3
    orders = [row["customer_id"] for row in rows["order"].values()]
    without = sum(key not in orders for key in rows["customer"])
    assert without < len(rows["customer"]) / 2


def test_some_names_are_nearly_the_same_and_some_the_same() -> None:
    (domain,) = load_domains(["clinic_desk"])
    patients = list(grown(domain, 3000).rows["patient"].values())
    entity = domain.entities["patient"]
    twins = ambiguous_keys(entity, patients)
    assert 0 < len(twins) < 0.1 * len(patients)
    assert len(twins) < num_alike(entity, patients) < 0.3 * len(patients)


def test_gaps_stay_about_as_many_as_in_the_seed() -> None:
    (domain,) = load_domains(["letting_office"])
    found = grown(domain, 600)
    before = summary_of(domain.file, domain.seed_state, domain.seed_state)
    after = summary_of(domain.file, domain.seed_state, State.of(found.rows))
    seen = 0
    for own, larger in zip(before, after, strict=True):
        if own.missing is not None and larger.missing is not None and larger.rows > 50:
            seen += 1
            assert abs(own.missing - larger.missing) < 0.35
    assert seen


def test_a_rule_that_no_row_but_those_of_the_seed_keeps_is_named() -> None:
    data = parse_yaml(SHOP.encode(), origin="shop")
    known = ", ".join(f"'S-{number}'" for number in range(1001, 1007))
    data["rules"].append(
        {
            "id": "old_sales_only",
            "entity": "sale",
            "that": f"sale.sale_id in [{known}]",
            "text": "There are no other sales.",
        }
    )
    domain = Domain.of(data, origin="shop")
    with pytest.raises(ConfigError, match="rule old_sales_only"):
        grown(domain, 100)


def test_what_cannot_be_told_apart_does_not_grow() -> None:
    data = parse_yaml(SHOP.encode(), origin="shop")
    data["entities"]["kind"] = {
        "key": "kind_id",
        "prefix": "K-",
        "natural": ["name"],
        "fields": {"kind_id": {"type": "string"}, "name": {"type": "enum", "values": ["a", "b"]}},
    }
    data["seed"]["kind"] = [["K-1", "a"], ["K-2", "b"]]
    found = grown(Domain.of(data, origin="shop"), 200)
    assert len(found.rows["kind"]) == 2
    assert sum(map(len, found.rows.values())) == 200


def test_a_field_can_say_what_its_texts_are_like() -> None:
    data = parse_yaml(SHOP.encode(), origin="shop")
    data["entities"]["article"]["fields"]["name"]["like"] = "code"
    rows = grown(Domain.of(data, origin="shop"), 100).rows["article"]
    new = [row["name"] for row in list(rows.values())[4:]]
    assert new
    assert all(any(c.isdigit() for c in name) for name in new)
