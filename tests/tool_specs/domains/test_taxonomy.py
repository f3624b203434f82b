"""Every domain of the taxonomy loads, and its lifecycles and rules show on its seed."""

import re
from collections import Counter

import pytest

from records.errors import ConfigError
from tool_specs.domains.domain import Domain, load_domain
from tool_specs.domains.taxonomy import TAXONOMY, load_taxonomy, taxonomy_files
from tool_specs.execution.invariants import idle_parts
from tool_specs.execution.programs import Entities

WRITTEN = sorted(TAXONOMY.glob("*/*.yaml"))


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.stem)
def test_a_domain_of_the_taxonomy_shows_all_its_business(path):
    domain = load_domain(path)
    assert (path.stem, path.parent.name) == (domain.name, domain.category)
    assert idle_parts(domain.file, Entities.of(domain.file), domain.seed_state) == []


def test_no_name_stands_twice():
    names = Counter(path.stem for path in [*WRITTEN, *TAXONOMY.parent.glob("builtin/*.yaml")])
    assert [name for name, times in names.items() if times > 1] == []
    assert len(taxonomy_files()) == len(names)


def test_an_unknown_domain_is_refused_with_its_name():
    with pytest.raises(ConfigError, match="'no_such_place'"):
        load_taxonomy(["no_such_place"])


def small(**changes):
    """A domain of one entity, one move and one rule, with some of it replaced."""
    loan = {
        "key": "loan_id",
        "prefix": "LN-",
        "fields": {
            "loan_id": {"type": "string"},
            "borrower": {"type": "string"},
            "days": {"type": "integer", "min": 1},
            "status": {"type": "enum", "values": ["out", "back"]},
            "returned_on": {"type": "date", "optional": True},
        },
        "lifecycle": {
            "field": "status",
            "moves": [
                {
                    "name": "take_back",
                    "text": "Take a lent thing back.",
                    "from": ["out"],
                    "to": "back",
                    "stamp": "returned_on",
                    "needs": [
                        {"that": "loan.days < 30", "error": "too_late", "message": "Is it lost?"}
                    ],
                }
            ],
        },
    }
    loan["lifecycle"]["moves"][0].update(changes.pop("move", {}))
    content = {
        "domain": "lending",
        "title": "Lending",
        "category": "software_apps",
        "description": "Things are lent and come back.",
        "now": "2026-03-02T09:00:00",
        "entities": {"loan": loan},
        "rules": [
            {"id": "short", "entity": "loan", "that": "loan.days <= 60", "text": "Sixty days."}
        ],
        "seed": {"loan": [["LN-1", "Ana", 10, "out", None], ["LN-2", "Bo", 40, "out", None]]},
    }
    return Domain.of(content | changes, origin="lending.yaml")


def test_rows_may_be_lists_in_the_order_of_the_fields():
    row = {"loan_id": "LN-1", "borrower": "Ana", "days": 10, "status": "out", "returned_on": None}
    assert small().seed["loan"][0] == row


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"seed": {"loan": [["LN-1", "Ana"]]}}, r"seed.loan\[0\] has 2 values; fields: loan_id"),
        ({"seed": {"loan": [["LN-1", "Ana", 61, "out", None]]}}, "breaks rule short"),
        ({"move": {"from": ["lost"]}}, "'lost' is not a loan status; allowed: out, back"),
        ({"move": {"stamp": "borrower"}}, "'borrower' is not a date or datetime"),
        ({"move": {"takes": ["status"]}}, "'status' is not a field that a caller may give"),
        ({"move": {"effects": [{"ref": "borrower", "set": {"x": "1"}}]}}, "is not a ref field"),
        (
            {"move": {"needs": [{"that": "loan.age > 1", "error": "e", "message": "words"}]}},
            r"moves\[take_back\].needs\[e\].that: 'loan.age > 1'",
        ),
        (
            {"rules": [{"id": "r", "entity": "book", "that": "true", "text": "Ten letters"}]},
            r"rules\[r\].entity: unknown entity 'book'; known: loan",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(changes, words):
    with pytest.raises(ConfigError, match=words):
        small(**changes)


@pytest.mark.parametrize(
    ("days", "words"),
    [((10, 20), "no row in .* fails it"), ((30, 40), "no row in out meets its needs")],
)
def test_business_that_the_seed_never_shows_is_named(days, words):
    rows = [
        [f"LN-{i}", name, d, "out", None]
        for i, (name, d) in enumerate(zip("ab", days, strict=True))
    ]
    domain = small(seed={"loan": rows})
    found = idle_parts(domain.file, Entities.of(domain.file), domain.seed_state)
    assert len(found) == 1
    assert re.search(words, found[0])
