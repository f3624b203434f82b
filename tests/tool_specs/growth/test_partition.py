"""What grows for one split never grows for another."""

from itertools import combinations
from typing import get_args

import pytest

from records.tables.splits import Split
from tool_specs.domains.domain import Domain, builtin_names, load_domains
from tool_specs.domains.taxonomy import load_taxonomy
from tool_specs.growth.growing import grow
from tool_specs.growth.partition import SHARES, fits, split_of_value

SPLITS = get_args(Split)


def values_of(domain: Domain, split: Split, rows: int) -> set[tuple[str, object]]:
    """(kind of value, value) of all that grew in fields whose values are kept apart."""
    found = grow(
        domain.file, domain.seed_state, domain.invariants, rows=rows, number=0, split=split
    )
    return {
        (type(row[field]).__name__ if isinstance(row[field], str) else "number", row[field])
        for name, table in found.rows.items()
        for row in list(table.values())[len(domain.seed[name]) :]
        for field in found.partitioned.get(name, ())
        if row[field] and row[field] not in [own[field] for own in domain.seed[name]]
    }


def test_every_value_has_one_split_and_each_split_its_share() -> None:
    values = [f"Anna {number}" for number in range(5000)]
    for split, share in SHARES.items():
        assert abs(sum(fits(v, split) for v in values) / len(values) - share) < 0.03
    assert sum(SHARES.values()) == pytest.approx(1)
    assert split_of_value("Anna Berg") == split_of_value("ANNA BERG")
    assert split_of_value(5) == split_of_value(5.0)


@pytest.mark.parametrize("name", ["web_shop", "clinic_desk", "bond_auction"])
def test_splits_share_no_value_that_grew(name: str) -> None:
    (domain,) = load_taxonomy([name])
    grown = {split: values_of(domain, split, 400) for split in SPLITS}
    assert all(len(values) > 40 for values in grown.values())
    for first, second in combinations(SPLITS, 2):
        assert not grown[first] & grown[second]


@pytest.mark.scale
def test_splits_share_no_value_that_grew_in_ten_thousand_rows() -> None:
    (domain,) = load_domains(["web_shop"])
    train, held_out = values_of(domain, "train", 10_000), values_of(domain, "heldout_task", 10_000)
    assert len(train) > 4000
    assert len(held_out) > 4000
    assert not train & held_out


def test_domains_of_different_splits_share_no_value_that_grew() -> None:
    first, second = load_domains(["web_shop", "clinic_desk"])
    assert not values_of(first, "train", 600) & values_of(second, "heldout_domain", 600)


def test_most_texts_that_name_rows_are_kept_apart() -> None:
    """Fields by which people know rows, and that are neither enums, dates nor references."""
    kept = total = 0
    for domain in load_domains(builtin_names()):
        found = grow(
            domain.file, domain.seed_state, domain.invariants, rows=60, number=0, split="train"
        )
        for name, entity in domain.entities.items():
            for field in entity.natural:
                if entity.fields[field].type == "string":
                    total += 1
                    kept += field in found.partitioned.get(name, ())
    assert kept >= 0.9 * total
