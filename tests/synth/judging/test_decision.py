"""The rule of decision: whose verdict counts, what rejects; older gradings decide as they did."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth.judging.decision import UNDECIDED, DecisionConfig, counting, decide_rows, reason_of
from synth.rubrics.criteria import Criterion, Rubric, decide
from synth.rubrics.standing import RANKING

Row = dict[str, Any]
PLAIN = DecisionConfig()
SCORES = st.sampled_from([0.0, 0.5, 1.0])


def verdict(
    criterion: str,
    kind: str,
    by: str,
    score: float | None,
    *,
    mandatory: bool = True,
    weight: float = 1.0,
) -> Row:
    """A row; without a score it is one that code leaves open."""
    return {
        "criterion_id": criterion,
        "kind": kind,
        "checked_by": by,
        "mandatory": mandatory,
        "weight": weight,
        "passed": None if score is None else score == 1.0,
        "score": score or 0.0,
    }


@st.composite
def gradings(draw: st.DrawFn) -> list[Row]:
    """Code's rows, some of them open, and then the judge's on some of the criteria."""
    rows: list[Row] = []
    names = [f"c{i}" for i in range(draw(st.integers(1, 6)))]
    for who in ("code", "judge"):
        for name in draw(st.lists(st.sampled_from(names), unique=True)):
            same = next((r for r in rows if r["criterion_id"] == name), None)
            score = draw(SCORES if who == "judge" else st.none() | SCORES)
            fresh = verdict(
                name,
                draw(st.sampled_from(["state", "nl"])),
                who,
                score,
                mandatory=draw(st.booleans()),
                weight=draw(st.sampled_from([0.0, 1.0, 4.0])),
            )
            fixed = {key: same[key] for key in ("kind", "mandatory", "weight")} if same else {}
            rows.append(fresh | fixed)
    return rows


@st.composite
def older_gradings(draw: st.DrawFn) -> tuple[Rubric, list[Row], bool]:
    """A rubric, and rows as they were: code's on what it checks, the judge's on everything, and
    the check for unsupported claims, mandatory and without weight."""
    criteria = [
        Criterion(
            id=f"c{i}",
            words="w",
            weight=draw(st.sampled_from([1.0, 2.0, 4.0])),
            mandatory=draw(st.booleans()),
            kind=draw(st.sampled_from(["state", "communicate", "nl"])),
        )
        for i in range(draw(st.integers(1, 6)))
    ]
    threshold = draw(st.sampled_from([0.0, 0.7, 1.0]))
    rubric = Rubric(pass_threshold=threshold, criteria=tuple(criteria))
    rows = [
        verdict(c.id, c.kind, who, draw(SCORES), mandatory=c.mandatory, weight=c.weight)
        for who in ("code", "judge")
        for c in criteria
        if who == "judge" or c.kind != "nl"
    ]
    supported = draw(st.booleans())
    claims = verdict("unsupported_claims", "unsupported_claims", "code", float(supported), weight=0)
    return rubric, [*rows, claims], supported


@given(older_gradings())
def test_older_gradings_decide_as_they_did(older: tuple[Rubric, list[Row], bool]) -> None:
    rubric, rows, supported = older
    deciding = [
        row
        for row in rows
        if row["weight"] and (row["kind"] == "nl") == (row["checked_by"] == "judge")
    ]
    before = decide(rubric, {row["criterion_id"]: row["score"] for row in deciding})
    now = decide_rows(rows, pass_threshold=rubric.pass_threshold, config=PLAIN)
    assert now.accepted == (before.accepted and supported)
    assert now.score == pytest.approx(before.share)
    assert (reason_of(now) is None) == now.accepted
    if now.failed is not None:
        assert now.failed["criterion_id"] in (*before.failed, "unsupported_claims")


@given(gradings(), st.booleans())
def test_codes_word_counts_where_there_is_one(rows: list[Row], judge_counts: bool) -> None:
    chosen = counting(rows, judge_counts=judge_counts)
    by_code = {
        r["criterion_id"] for r in rows if r["checked_by"] == "code" and r["passed"] is not None
    }
    by_judge = {r["criterion_id"] for r in rows if r["checked_by"] == "judge"}
    assert {r["criterion_id"] for r in chosen if r["checked_by"] == "code"} == by_code
    of_judge = {r["criterion_id"] for r in chosen if r["checked_by"] == "judge"}
    assert of_judge == (by_judge - by_code if judge_counts else set())
    assert len(chosen) == len(by_code) + len(of_judge)


@given(gradings(), st.sampled_from([0.0, 0.5, 1.0]))
def test_where_the_judge_does_not_count_its_rows_change_nothing(
    rows: list[Row], threshold: float
) -> None:
    by_code = [row for row in rows if row["checked_by"] == "code"]
    without = decide_rows(rows, pass_threshold=threshold, config=PLAIN, judge_counts=False)
    assert without == decide_rows(by_code, pass_threshold=threshold, config=PLAIN)


@given(gradings(), st.sampled_from([0.0, 0.5, 0.9]))
def test_what_only_scores_rejects_nothing(rows: list[Row], threshold: float) -> None:
    everything = DecisionConfig(scored_only=("state", "nl"))
    free = decide_rows(rows, pass_threshold=threshold, config=everything)
    strict = decide_rows(rows, pass_threshold=threshold, config=PLAIN)
    assert free.failed is None
    assert free.score == strict.score
    assert free.accepted == (bool(counting(rows)) and free.score >= threshold)
    assert strict.accepted <= free.accepted
    if strict.failed is not None:
        by_id = DecisionConfig(scored_only=(strict.failed["criterion_id"],))
        after = decide_rows(rows, pass_threshold=threshold, config=by_id)
        assert after.failed != strict.failed


@given(gradings(), st.floats(0, 1), st.floats(0, 1))
def test_the_threshold_of_the_settings_takes_the_place_of_the_rubrics(
    rows: list[Row], own: float, given_: float
) -> None:
    overruled = decide_rows(rows, pass_threshold=own, config=DecisionConfig(pass_threshold=given_))
    assert overruled == decide_rows(rows, pass_threshold=given_, config=PLAIN)
    low, high = sorted((own, given_))
    strict = decide_rows(rows, pass_threshold=high, config=PLAIN)
    assert strict.accepted <= decide_rows(rows, pass_threshold=low, config=PLAIN).accepted


@given(gradings())
def test_the_first_mandatory_verdict_that_is_not_passed_rejects(rows: list[Row]) -> None:
    decision = decide_rows(rows, pass_threshold=0.0, config=PLAIN)
    failing = [r for r in counting(rows) if r["mandatory"] and not r["passed"]]
    assert decision.failed == (failing[0] if failing else None)
    assert decision.accepted == (not failing and bool(counting(rows)))


@pytest.mark.parametrize("name", sorted(RANKING))
def test_what_only_ranks_is_in_the_score_and_decides_nothing(name: str) -> None:
    goal = verdict("goal", "state", "code", 1.0, weight=2.0)
    half = verdict("half", "communicate", "code", 0.5, mandatory=False, weight=2.0)
    aside = verdict(name, "nl", "judge", 0.0, mandatory=False)
    better = aside | {"passed": True, "score": 1.0}
    for threshold, accepted in ((0.7, True), (0.8, False)):
        plain = decide_rows([goal, half], pass_threshold=threshold, config=PLAIN)
        worse = decide_rows([goal, half, aside], pass_threshold=threshold, config=PLAIN)
        best = decide_rows([goal, half, better], pass_threshold=threshold, config=PLAIN)
        assert [plain.accepted, worse.accepted, best.accepted] == [accepted] * 3
        assert worse.score < plain.score < best.score
        assert worse.named is (None if accepted else half)
    own = aside | {"mandatory": True}  # a task's own criterion of that id
    assert decide_rows([goal, own], pass_threshold=0.0, config=PLAIN).named is own


def test_no_verdict_accepts_nothing() -> None:
    open_alone = [verdict("truth", "nl", "code", None)]
    for rows in ([], open_alone):
        decision = decide_rows(rows, pass_threshold=0.0, config=PLAIN)
        assert (decision.accepted, decision.score, decision.failed) == (False, 0.0, None)
        assert reason_of(decision) == "low_score"


@pytest.mark.parametrize(
    ("kind", "name", "reason"),
    [
        ("state", "goal", "failed_state"),
        ("nl", "denial", "failed_denial"),
        ("unsupported_claims", "unsupported_claims", "failed_unsupported_claims"),
    ],
)
def test_the_reason_names_the_kind_or_what_the_judge_decides(
    kind: str, name: str, reason: str
) -> None:
    rows = [verdict(name, kind, "judge" if kind == "nl" else "code", 0.0)]
    assert reason_of(decide_rows(rows, pass_threshold=0.0, config=PLAIN)) == reason


def test_a_score_that_is_too_low_names_what_takes_most_from_it() -> None:
    rows = [
        verdict("goal", "state", "code", 1.0),
        verdict("small", "nl", "judge", 0.0, mandatory=False),
        verdict("large", "nl", "judge", 0.0, mandatory=False, weight=3.0),
        verdict("half", "communicate", "code", 0.5, mandatory=False, weight=5.0),
    ]
    decision = decide_rows(rows, pass_threshold=0.7, config=PLAIN)
    assert (decision.failed, reason_of(decision)) == (None, "low_score")
    assert decision.named is rows[2]
    assert decide_rows(rows, pass_threshold=0.1, config=PLAIN).named is None


def test_what_a_judge_leaves_undecided_and_has_to_be_passed_is_not_accepted() -> None:
    goal = verdict("goal", "state", "code", 1.0)
    for rows in (
        [goal, verdict("manners", "nl", "judge", None)],
        [goal, *(verdict("told", "communicate", by, None) for by in ("code", "judge"))],
    ):
        decision = decide_rows(rows, pass_threshold=0.7, config=PLAIN)
        assert (decision.accepted, decision.failed) == (False, None)
        assert decision.named is rows[-1]
        assert reason_of(decision) == UNDECIDED
        spared = DecisionConfig(scored_only=(rows[-1]["kind"],))
        assert decide_rows(rows, pass_threshold=0.7, config=spared).accepted
        failed = [*rows, verdict("told_too", "communicate", "code", 0.0)]
        decision = decide_rows(failed, pass_threshold=0.7, config=PLAIN)
        assert reason_of(decision) == "failed_communicate"
        assert decide_rows(rows, pass_threshold=0.7, config=PLAIN, judge_counts=False).accepted


def test_what_nobody_was_asked_or_nobody_needs_may_stay_undecided() -> None:
    goal = verdict("goal", "state", "code", 1.0)
    for aside in (
        verdict("told", "communicate", "code", None),  # no judge was asked
        verdict("user_part", "nl", "judge", None),
        verdict("brief", "nl", "judge", None, mandatory=False),
    ):
        assert decide_rows([goal, aside], pass_threshold=0.7, config=PLAIN).accepted
