"""Quotas: at the end every share holds, the best stay, and no order of rows matters."""

import random
from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from synth.curation.candidates import CurationCandidate
from synth.curation.deciding import CurationRules, decide_all
from synth.curation.quotas import VALUES, over_sequences, over_shares, warnings_of
from synth.curation.settings.config import ANY_OTHER, DIMENSIONS, CurationConfig
from tests.synth.curation.test_band import attempt

EXECUTORS = ("state_machine", "mcp", "llm")


def candidates(kinds: list[tuple[int, int, int]]) -> list[CurationCandidate]:
    """One for each (domain, variant, executors as bits), the best first."""
    return [
        attempt(f"task-{n:03d}", 0, passes=True)._replace(
            trajectory_id=f"t{n:03d}",
            score=1.0 - n / 1000,
            domain=f"domain-{domain}",
            variant=f"variant-{variant}",
            executed_by=tuple(e for bit, e in enumerate(EXECUTORS) if executors >> bit & 1),
        )
        for n, (domain, variant, executors) in enumerate(kinds)
    ]


def config(**values: Any) -> CurationConfig:
    return CurationConfig.model_validate({"sequence_share": 1.0} | values)


KINDS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 7)), min_size=1, max_size=60
)
SHARES = st.dictionaries(
    st.sampled_from(["*", "domain-0", "variant-1", "llm", "none"]),
    st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0]),
    max_size=3,
)
QUOTAS = st.dictionaries(st.sampled_from(["domain", "variant", "executed_by"]), SHARES)


@settings(max_examples=150)
@given(KINDS, QUOTAS, st.integers(0, 4))
def test_at_the_end_every_share_holds(kinds: list, quotas: dict, least: int) -> None:
    rules = config(quotas=quotas, quota_min=least)
    ranked = candidates(kinds)
    dropped = over_shares(ranked, rules)
    kept = [c for c in ranked if c.trajectory_id not in dropped]
    for dimension in DIMENSIONS:
        counts = Counter(value for c in kept for value in VALUES[dimension](c))
        for value, number in counts.items():
            shares = rules.quotas.get(dimension, {})
            other = shares.get(ANY_OTHER, 1.0) if value else 1.0
            share = shares.get(value or "none", other)
            assert number <= (max(least, share * len(kept) + 1e-6) if share else 0)


@given(KINDS, QUOTAS, st.randoms(use_true_random=False))
def test_the_order_of_candidates_changes_nothing(
    kinds: list, quotas: dict, rng: random.Random
) -> None:
    rules = CurationRules("g", config(quotas=quotas))
    given_order = candidates(kinds)
    first = decide_all(given_order, rules)
    rng.shuffle(given_order)
    assert decide_all(given_order, rules) == first


def test_the_worst_go_with_the_dimension_as_their_reason() -> None:
    ranked = candidates([(0, 0, 1)] * 8 + [(1, 0, 1)] * 8)
    rows = decide_all(ranked, CurationRules("g", config(quotas={"domain": {"domain-0": 0.2}})))
    reasons = {row["trajectory_id"]: row["drop_reason"] for row in rows}
    kept = [i for i, reason in reasons.items() if reason is None]
    assert kept == [*(f"t{n:03d}" for n in range(3)), *(f"t{n:03d}" for n in range(8, 16))]
    assert set(reasons.values()) == {None, "domain_quota"}


def test_nothing_goes_that_could_stay() -> None:
    """Of a partition the largest numbers are kept that satisfy all shares at once."""
    sizes, share = (30, 20, 5, 4), 0.4
    kinds = [(domain, 0, 1) for domain, size in enumerate(sizes) for _ in range(size)]
    dropped = over_shares(candidates(kinds), config(quotas={"domain": {"*": share}}, quota_min=0))
    left = len(kinds) - len(dropped)
    fits = [q for q in range(31) if q <= share * sum(min(size, q) for size in sizes)]
    assert left == sum(min(size, max(fits)) for size in sizes)


def test_a_share_of_simulated_data_leaves_the_rest_to_what_was_really_executed() -> None:
    kinds = [(0, 0, 1)] * 60 + [(0, 0, 2)] * 30
    ranked = candidates(kinds)
    dropped = over_shares(ranked, config(quotas={"executed_by": {"state_machine": 0.5}}))
    kept = Counter(c.executed_by for c in ranked if c.trajectory_id not in dropped)
    assert kept == {("state_machine",): 30, ("mcp",): 30}
    assert set(dropped.values()) == {"executed_by"}


def test_without_quotas_nothing_is_over() -> None:
    assert over_shares(candidates([(0, 0, 0)] * 9), config()) == {}


def test_what_has_no_domain_is_not_one_domain() -> None:
    """As imported conversations, unless a quota names them."""
    unknown = [c._replace(domain=None) for c in candidates([(0, 0, 1)] * 20)]
    known = [c._replace(trajectory_id=f"k{c.trajectory_id}") for c in candidates([(1, 0, 1)] * 20)]
    over = over_shares([*unknown, *known], config(quotas={"domain": {"*": 0.1}}, quota_min=0))
    assert set(over) == {c.trajectory_id for c in known[2:]}
    capped = over_shares([*unknown, *known], config(quotas={"domain": {"none": 0.2}}))
    assert set(capped) == {c.trajectory_id for c in unknown[5:]}


def test_the_quota_of_sequences_is_on_what_was_planned_here() -> None:
    """Not on imports, and where nothing is called there is no sequence."""
    same = [c._replace(sequence=("find", "book")) for c in candidates([(0, 0, 1)] * 30)]
    ids = {c.trajectory_id for c in same[3:]}
    assert over_sequences(same, CurationConfig()) == ids
    assert over_sequences([c._replace(sequence=()) for c in same], CurationConfig()) == set()
    imported = [c._replace(variant="imported") for c in same]
    assert over_sequences(imported, CurationConfig()) == set()
    own = [c._replace(trajectory_id=f"own-{c.trajectory_id}") for c in same]
    assert over_sequences([*own, *imported], CurationConfig()) == {f"own-{i}" for i in ids}


def test_shares_that_leave_little_and_values_that_nothing_has_are_told() -> None:
    ranked = candidates([(domain, 0, 1) for domain in range(4)] * 25)
    rules = config(quotas={"domain": {"*": 0.1, "domain-9": 0.5}})
    rows = decide_all(ranked, CurationRules("g", rules))
    reasons = Counter(row["drop_reason"] for row in rows)
    unknown, little = warnings_of(ranked, reasons, rules)
    assert "curation.quotas.domain names 'domain-9', which no trajectory has" in unknown
    assert "domain-0, domain-1, domain-2, domain-3" in unknown
    assert "quotas leave 12 of 100 trajectories (domain_quota 88)" in little
    assert list(warnings_of(ranked, {None: 100}, config())) == []
