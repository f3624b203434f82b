"""Perturbed negatives: each fails what it says by code, and leaves the stored rows as they were."""

import copy
from collections import Counter

import pytest

from synth.judging.perturbation.attacks import CHANNELS
from synth.judging.perturbation.registry import (
    ATTACKS,
    BY_CODE,
    BY_WORDS,
    claims_undone_work,
    code_says,
    perturb,
)
from synth.rubrics.built_in import BUILT_IN
from synth.rubrics.criteria import JUDGED
from synth.rubrics.reward import evidence_of
from tests.synth.judging.perturbation_work import sources

KIND_OF = {
    "wrong_argument": "state",
    "missing_call": "state",
    "forbidden_call": "call",
    "wrong_order": "call",
    "state_not_reached": "state",
    "collateral_change": "state",
    "claimed_not_done": "state",
    "fact_not_told": "communicate",
    "fact_changed": "communicate",
    "policy_broken": "policy",
    "format_broken": "format",
}


def test_the_sources_pass_by_code() -> None:
    for source in sources():
        seen = evidence_of(source.trajectory["messages"], source.calls)
        assert all(v.passed for v in BUILT_IN.check_all(source.rubric, seen).values())


@pytest.mark.parametrize("name", KIND_OF)
def test_a_perturbed_negative_fails_the_kind_meant(name: str) -> None:
    counts: Counter[str] = Counter()
    for source in sources():
        negative = perturb(name, source)
        if negative is None:
            continue
        said = code_says(negative, source, BUILT_IN)
        counts["discarded" if said is None else "confirmed"] += 1
        if said is not None:
            assert said.passed is False
            assert negative.criterion.kind == KIND_OF[name]
            assert negative.channel is None
    assert counts["confirmed"] >= 5
    assert counts["discarded"] <= 0.1 * counts["confirmed"]


@pytest.mark.parametrize("name", BY_WORDS)
def test_failures_in_words_are_for_the_judge_alone(name: str) -> None:
    made = [(s, negative) for s in sources() if (negative := perturb(name, s))]
    assert made
    for source, negative in made:
        said = code_says(negative, source, BUILT_IN)
        assert said is not None
        assert said.passed is None
        assert negative.criterion.kind == JUDGED
        assert negative.calls == list(source.calls)
        assert negative.messages != source.trajectory["messages"]


@pytest.mark.parametrize("channel", CHANNELS)
def test_text_aimed_at_the_judge_stands_in_its_channel_only(channel: str) -> None:
    role = {"agent_message": "assistant", "user_turn": "user"}.get(channel, "tool")
    made = [negative for s in sources()[:60] if (negative := perturb(f"attack_{channel}", s))]
    assert made
    for negative in made:
        text = negative.detail.split(f"in the {channel}: ")[1][:15].split("\n")[0].split('"')[0]
        holding = {m["role"] for m in negative.messages if text in str(m.get("content"))}
        assert role in holding
        assert len(text) < 15 or holding == {role}  # beginnings such as "{" stand elsewhere, too
        assert negative.channel == channel


def test_the_same_episode_is_perturbed_alike_and_stays_as_it_is() -> None:
    for source in sources()[:40]:
        before = copy.deepcopy((source.trajectory, list(source.calls), source.task))
        for name in (*BY_CODE, *BY_WORDS, *ATTACKS):
            assert perturb(name, source) == perturb(name, source)
        assert (source.trajectory, list(source.calls), source.task) == before


def test_unsupported_claims_are_seen_in_perturbed_negatives() -> None:
    seen: Counter[tuple[str, bool]] = Counter()
    for source in sources():
        for name in filter(claims_undone_work, BY_WORDS):
            if (negative := perturb(name, source)) and (
                said := code_says(negative, source, BUILT_IN)
            ):
                seen[name, said.honest] += 1
    assert seen["nl_unconfirmed", False] > 0.5 * seen.total()
