"""Typed patches: what a domain forbids never counts, and what its own tools do always may."""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth.episode.tools.state_patch import PatchError, apply_patch
from tests.examples import examples
from tool_specs.domains.domain import Domain, load_domains
from tool_specs.domains.interpreter import DomainEnvironment
from tool_specs.execution.fields import RowCheck, ids_in, refs_of
from tool_specs.execution.invariants import broken_in
from tool_specs.validation.drawing import draw_success

DESK: dict[str, Any] = {
    "domain": "loan_desk",
    "title": "Loan desk",
    "category": "enterprise_business_intelligence",
    "description": "Lends things.",
    "now": "2026-03-02T09:00:00",
    "entities": {
        "thing": {
            "key": "thing_id",
            "prefix": "TH-",
            "fields": {
                "thing_id": {"type": "string"},
                "name": {"type": "string", "max": 20},
                "copies": {"type": "integer", "min": 0},
                "lent": {"type": "integer", "min": 0},
            },
        },
        "loan": {
            "key": "loan_id",
            "prefix": "LO-",
            "fields": {
                "loan_id": {"type": "string"},
                "thing_id": {"type": "ref", "to": "thing"},
                "due": {"type": "date", "optional": True},
                "status": {"type": "enum", "values": ["open", "out", "back"]},
            },
            "lifecycle": {
                "field": "status",
                "moves": [
                    {"name": "lend", "text": "Hand the thing out.", "from": ["open"], "to": "out"},
                    {"name": "take", "text": "Take the thing back.", "from": ["out"], "to": "back"},
                ],
            },
        },
    },
    "rules": [
        {
            "id": "enough",
            "entity": "thing",
            "that": "thing.lent <= thing.copies",
            "text": "No more is lent than there is.",
        }
    ],
    "seed": {
        "thing": [
            {"thing_id": "TH-1001", "name": "drill", "copies": 2, "lent": 1},
            {"thing_id": "TH-1002", "name": "ladder", "copies": 1, "lent": 0},
        ],
        "loan": [
            {"loan_id": "LO-1001", "thing_id": "TH-1001", "due": "2026-03-09", "status": "out"},
            {"loan_id": "LO-1002", "thing_id": "TH-1001", "due": None, "status": "open"},
        ],
    },
}
DOMAIN = Domain.of(DESK, origin="test")
BUILT_IN = load_domains()


def op(kind: str, entity: str, key: str, **fields: Any) -> dict[str, Any]:
    return {"op": kind, "entity": entity, "id": key, "set": fields}


def sound(environment: DomainEnvironment) -> None:
    """Everything that the domain declares of a state, read from scratch."""
    domain, state = environment.domain, environment.state
    for name, entity in domain.entities.items():
        for row in environment.rows(name):
            assert RowCheck(entity).row(row) == row
            for field, target in refs_of(entity).items():
                assert all(state.get(target, key) for key in ids_in(row[field]))
    assert list(broken_in(state, domain.file, domain.invariants)) == []
    assert state.total == state.total_from_scratch()


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        (op("update", "tool", "TH-1001", name="x"), "unknown entity; entities: thing, loan"),
        (op("update", "thing", "TH-1001", colour="red"), "colour is not a field"),
        (op("update", "thing", "TH-1001", copies="two"), "copies must be a whole number"),
        (op("update", "thing", "TH-1001", copies=-1), "copies must be a whole number of at least"),
        (op("update", "thing", "TH-1009", copies=3), "there is no thing with this id"),
        (op("update", "thing", "TH-1001"), "set names no field"),
        (op("update", "thing", "TH-1001", thing_id="TH-2"), "is the id and cannot change"),
        (op("delete", "thing", "TH-1009"), "there is no thing with this id"),
        (op("delete", "thing", "TH-1001"), "still refers to thing"),
        (op("delete", "thing", "TH-1002", name="ladder"), "set must be empty"),
        (op("create", "thing", "TH-1001", name="a", copies=1, lent=0), "one with this id already"),
        (op("create", "thing", "X-1", name="a", copies=1, lent=0), "must be TH- and a number"),
        (op("create", "thing", "TH-1003", name="a"), "copies must be a whole number"),
        (op("create", "loan", "LO-1003", thing_id="TH-9", status="open"), "no thing has the id"),
        (op("create", "loan", "LO-1003", thing_id="TH-1002", status="out"), "starts with status"),
        (op("update", "loan", "LO-1002", status="back"), "status cannot go from"),
        (op("update", "thing", "TH-1001", lent=3), "breaks rule enough"),
    ],
)
def test_a_patch_that_does_not_fit_is_refused_and_changes_nothing(
    patch: dict[str, Any], words: str
) -> None:
    environment = DomainEnvironment.of(DOMAIN)
    before = environment.state_hash
    good = op("update", "thing", "TH-1002", name="steps")
    with pytest.raises(PatchError, match=words):
        apply_patch(DOMAIN, environment.state, [good, patch])
    assert environment.state_hash == before
    assert environment.rows("thing")[1]["name"] == "ladder"


def test_all_faults_of_the_rows_are_named_at_once() -> None:
    patch = [op("delete", "thing", "TH-9"), op("update", "loan", "LO-1001", due="soon")]
    with pytest.raises(PatchError) as refused:
        apply_patch(DOMAIN, DomainEnvironment.of(DOMAIN).state, patch)
    assert len(refused.value.problems) == 2


def test_a_patch_counts_as_a_whole() -> None:
    """Rows of one patch may refer to each other, and an invariant is asked at the end."""
    environment = DomainEnvironment.of(DOMAIN)
    patch = [
        op("update", "thing", "TH-1001", lent=3),
        op("update", "thing", "TH-1001", copies=3),
        op("create", "loan", "LO-1003", thing_id="TH-1003", status="open"),
        op("create", "thing", "TH-1003", name="saw", copies=1, lent=0),
    ]
    diff = apply_patch(DOMAIN, environment.state, patch)
    assert [(c["op"], c["id"]) for c in diff] == [
        ("update", "TH-1001"),
        ("create", "LO-1003"),
        ("create", "TH-1003"),
    ]
    sound(environment)


@pytest.mark.parametrize("domain", BUILT_IN, ids=lambda domain: domain.name)
def test_what_a_program_does_is_accepted_as_a_patch(domain: Domain) -> None:
    """Its own diff, as a patch, leads to the same state: the validator refuses no truth."""
    rng, environment = random.Random(7), DomainEnvironment.of(domain)
    writing = [name for name, program in domain.programs.items() if not program.read_only]
    for name in [rng.choice(writing) for _ in range(40)]:
        drawn = draw_success(environment, name, rng, tries=20)
        if drawn is None:
            continue
        other = environment.snapshot()
        patch = [
            {"op": c["op"], "entity": c["entity"], "id": c["id"], "set": c["after"] or {}}
            for c in drawn.result.diff
        ]
        apply_patch(domain, other.state, patch)
        assert other.state_hash == drawn.result.hash_after
        environment = drawn.environment


KEYS = st.sampled_from(
    ["TH-1001", "TH-1002", "TH-1003", "LO-1001", "LO-1002", "LO-1003", "TH-", "X", "TH-01003"]
)
VALUES: st.SearchStrategy[Any] = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 5), st.floats(), st.text(max_size=30), KEYS,
    st.sampled_from(["open", "out", "back", "2026-03-09", "2026-02-30"]),
    st.lists(st.integers(), max_size=2),
)  # fmt: skip
FIELDS = st.sampled_from(
    ["thing_id", "name", "copies", "lent", "loan_id", "due", "status", "colour"]
)
OPS = st.builds(
    lambda kind, entity, key, fields: op(kind, entity, key, **fields),
    st.sampled_from(["create", "update", "delete"]),
    st.sampled_from(["thing", "loan", "tool"]),
    KEYS,
    st.dictionaries(FIELDS, VALUES, max_size=4),
)


@settings(max_examples=examples(400), deadline=None)
@given(st.lists(st.lists(OPS, min_size=1, max_size=4), max_size=6))
def test_no_accepted_patch_leaves_a_state_that_the_domain_forbids(
    patches: list[list[dict[str, Any]]],
) -> None:
    environment = DomainEnvironment.of(DOMAIN)
    for patch in patches:
        before = environment.state_hash
        try:
            diff = apply_patch(DOMAIN, environment.state, patch)
        except PatchError:
            assert environment.state_hash == before
        else:
            assert bool(diff) == (environment.state_hash != before)
        sound(environment)
