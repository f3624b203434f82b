"""Curation: the first reason against a trajectory, duplicates, quotas, and loss flags."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from records.tables.tables import TABLES
from synth.curation.candidates import SharedValues, candidate_of, first_words
from synth.curation.quotas import sequence_quota
from synth.curation.settings.config import CurationConfig
from synth.curation.turns import faulty_turns, train_turns
from synth.episode.tools.code_environments import CODE_DOMAIN
from synth.judging.decision import DecisionConfig
from tests.synth.curation.curated import curate

RUBRIC = {
    "pass_threshold": 0.7,
    "criteria": [
        {
            "id": "goal",
            "kind": "call",
            "words": "It is booked.",
            "weight": 2.0,
            "mandatory": True,
            "check": {"tool": "book", "must": "occur"},
        },
        {
            "id": "told",
            "kind": "communicate",
            "words": "The user is told the price.",
            "weight": 1.0,
            "mandatory": False,
            "check": {"values": [7]},
        },
        {"id": "tone", "kind": "nl", "words": "Polite.", "weight": 1.0, "mandatory": True},
    ],
}
TASK = {"task_id": "task", "domain_id": "hotel", "initial_state": {}, "rubric": RUBRIC}


def trajectory(name: str, *, opening: str | None = None, reason: str = "user_done") -> dict:
    return {
        "trajectory_id": name,
        "task_id": "task",
        "termination_reason": reason,
        "split": "train",
        "messages": [
            {"role": "system", "content": "Serve."},
            {"role": "user", "content": opening or f"Hello from {name}"},
            {"role": "assistant", "content": "Done."},
        ],
    }


def calls_of(name: str, *tools: str) -> list[dict[str, Any]]:
    return [
        {
            "trajectory_id": name,
            "call_index": i,
            "tool_call_id": f"call_{i}",
            "name": tool,
            "is_error": False,
            "injected_outcome": None,
        }
        for i, tool in enumerate(tools)
    ]


def verdicts_of(name: str, *, supported: bool = True, **scores: float) -> list[dict[str, Any]]:
    """Code's verdicts on goal and told, the judge's on all; the judge is kinder than code. The
    check for unsupported claims stands in gradings of before."""
    scores = {"goal": 1.0, "told": 1.0, "tone": 1.0} | scores
    criteria = {c["id"]: c for c in RUBRIC["criteria"]}
    rows = [(c, "code", s) for c, s in scores.items() if criteria[c]["kind"] != "nl"]
    rows += [(c, "judge", s if criteria[c]["kind"] == "nl" else 1.0) for c, s in scores.items()]
    claims = {"kind": "unsupported_claims", "mandatory": True, "weight": 0.0}
    rows.append(("unsupported_claims", "code", float(supported)))
    return [
        {
            "trajectory_id": name,
            "criterion_id": criterion,
            "checked_by": by,
            "passed": score == 1.0,
            "score": score,
        }
        | {key: criteria.get(criterion, claims)[key] for key in claims}
        for criterion, by, score in rows
    ]


def curated(trajectories: list, calls: list, verdicts: list, **config: Any) -> dict[str, Any]:
    rows = curate(
        grading_id="g",
        trajectories=trajectories,
        tool_calls=calls,
        verdicts=verdicts,
        tasks=[TASK],
        config=CurationConfig(**config),
    )
    return {row["trajectory_id"]: row for row in rows}


@pytest.mark.parametrize(
    ("reason", "verdicts", "expected"),
    [
        ("user_done", {}, None),
        ("user_done", {"goal": 0.0}, "failed_call"),
        ("user_done", {"goal": 0.0, "tone": 0.0}, "failed_call"),
        ("user_done", {"tone": 0.0}, "failed_tone"),
        ("user_done", {"told": 0.0}, None),
        ("user_done", {"supported": False}, "failed_unsupported_claims"),
        ("user_done", {"supported": False, "goal": 0.0}, "failed_call"),
        ("refused", {}, None),
        ("infra_error", {}, "infra_error"),
        ("user_error", {"goal": 0.0}, "user_error"),
        ("max_turns", {}, "max_turns"),
        ("token_budget", {}, "token_budget"),
        ("format_error", {}, "format_error"),
    ],
)
def test_the_first_reason_against_a_trajectory(reason: str, verdicts: dict, expected: str | None):
    row = curated([trajectory("a", reason=reason)], [], verdicts_of("a", **verdicts))["a"]
    assert row["drop_reason"] == expected
    assert row["accepted"] == (expected is None)
    failed = {"failed_call": "goal", "failed_tone": "tone"}
    unsupported = {"failed_unsupported_claims": "unsupported_claims"}
    assert (failed | unsupported).get(expected or "") in (row["failed_criterion"], None)
    assert set(row) == set(TABLES["curation"].schema.names) - {"run_id", "schema_version"}


def test_too_low_a_share_is_a_reason_of_its_own():
    light = {"id": "extra", "kind": "nl", "words": "Brief.", "weight": 6.0, "mandatory": False}
    task = TASK | {"rubric": {**RUBRIC, "criteria": [*RUBRIC["criteria"], light]}}
    verdicts = verdicts_of("a")
    given = {key: light[key] for key in ("mandatory", "weight")}
    extra = {"criterion_id": "extra", "score": 0.0, "passed": False}
    verdicts.append(verdicts[-2] | given | extra)
    rows = curate(
        grading_id="g",
        trajectories=[trajectory("a")],
        tool_calls=[],
        verdicts=verdicts,
        tasks=[task],
    )
    assert (rows[0]["drop_reason"], rows[0]["failed_criterion"]) == ("low_score", "extra")
    assert rows[0]["score"] == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("status", "tone", "decided_by", "expected"),
    [
        ("measured", 0.0, "code_and_judge", "failed_tone"),
        ("measured", 1.0, "code_and_judge", None),
        ("unmeasured", 0.0, "code_and_judge", "failed_tone"),
        ("below_minimum", 0.0, "code", None),
        ("below_minimum", 1.0, "code", None),
    ],
)
def test_below_the_minimum_quality_code_alone_decides(
    status: Any, tone: float, decided_by: str, expected: str | None
):
    candidate = candidate_of(trajectory("a"), [], verdicts_of("a", tone=tone), TASK, status)
    assert candidate is not None
    assert (candidate.drop_reason, candidate.decided_by) == (expected, decided_by)
    assert candidate.judge_status == status


def test_where_the_judge_was_not_asked_code_decides_and_no_status_stands():
    by_code = [row for row in verdicts_of("a", goal=0.0) if row["checked_by"] == "code"]
    candidate = candidate_of(trajectory("a"), [], by_code, TASK, "measured")
    assert candidate is not None
    assert (candidate.decided_by, candidate.judge_status) == ("code", None)
    assert candidate.drop_reason == "failed_call"


def test_what_the_settings_only_score_drops_nothing():
    verdicts = verdicts_of("a", goal=0.0)
    rules = DecisionConfig(scored_only=("call",), pass_threshold=0.4)
    candidate = candidate_of(trajectory("a"), [], verdicts, TASK, "measured", rules)
    assert candidate is not None
    assert candidate.drop_reason is None
    plain = candidate_of(trajectory("a"), [], verdicts, TASK, "measured")
    assert plain is not None
    assert (plain.drop_reason, plain.score) == ("failed_call", candidate.score)


def test_conversations_that_say_and_do_the_same_are_kept_once():
    texts = ["Book a room, please!", "book  a room please", "Book a table, please"]
    rows = curated(
        [trajectory(name, opening=text) for name, text in zip("abc", texts, strict=True)],
        [call for name in "abc" for call in calls_of(name, "find", "book")],
        [v for name in "abc" for v in verdicts_of(name)],
    )
    assert [rows[name]["drop_reason"] for name in "abc"] == [None, "near_duplicate", None]


def test_the_better_of_two_duplicates_stays():
    rows = curated(
        [trajectory("a", opening="Same"), trajectory("b", opening="Same")],
        [],
        verdicts_of("a", told=0.0) + verdicts_of("b"),
    )
    assert rows["a"]["drop_reason"] == "near_duplicate"
    assert rows["b"]["accepted"]


def test_a_rejected_trajectory_hides_no_other():
    rows = curated(
        [trajectory("a", opening="Same"), trajectory("b", opening="Same")],
        [],
        verdicts_of("a", goal=0.0) + verdicts_of("b"),
    )
    assert rows["b"]["accepted"]


def on_bugs(tasks: dict[str, str], trajectories: list, calls: list, verdicts: list) -> dict:
    """Reasons by trajectory; `tasks` on code -> the bug of each."""
    state = {"world": "shop", "definition": "d", "edits": []}
    rows = curate(
        grading_id="g",
        trajectories=trajectories,
        tool_calls=calls,
        verdicts=verdicts,
        tasks=[
            TASK
            | {"task_id": task, "domain_id": CODE_DOMAIN, "initial_state": state | {"bug": bug}}
            for task, bug in tasks.items()
        ],
    )
    return {row["trajectory_id"]: row["drop_reason"] for row in rows}


def test_of_tasks_on_one_bug_the_best_solved_stays_whatever_is_said_and_done():
    of = {"a1": "a", "a2": "a", "b": "b", "b_failed": "b", "c": "c"}
    tools = {"a1": ("look", "edit"), "a2": ("edit",), "b": ("edit", "run"), "c": ("look", "edit")}
    found = on_bugs(
        {"a": "one bug", "b": "one bug", "c": "another bug"},
        [trajectory(name) | {"task_id": task} for name, task in of.items()],
        [call for name, called in tools.items() for call in calls_of(name, *called)],
        [
            *verdicts_of("b_failed", goal=0.0),
            *verdicts_of("b", told=0.0),
            *(v for name in ("a1", "a2", "c") for v in verdicts_of(name)),
        ],
    )
    # two ways to mend it in one task are two trajectories, as with any task
    assert found == {
        "a1": None,
        "a2": None,
        "b": "near_duplicate",
        "b_failed": "failed_call",
        "c": None,
    }


def test_a_task_that_nobody_solved_hides_no_other_on_its_bug():
    found = on_bugs(
        {"a": "one bug", "b": "one bug"},
        [trajectory(name) | {"task_id": name} for name in "ab"],
        [],
        verdicts_of("a", goal=0.0) + verdicts_of("b", told=0.0),
    )
    assert found == {"a": "failed_call", "b": None}


def test_two_bugs_that_are_told_and_mended_alike_are_both_kept():
    found = on_bugs(
        {"a": "one bug", "b": "another bug"},
        [trajectory(name, opening="It is wrong.") | {"task_id": name} for name in "ab"],
        [call for name in "ab" for call in calls_of(name, "edit")],
        [v for name in "ab" for v in verdicts_of(name)],
    )
    assert found == {"a": None, "b": None}


def many(num: int, num_sequences: int) -> tuple[list, list, list]:
    names = [f"t{i:03d}" for i in range(num)]
    calls = [
        call
        for i, name in enumerate(names)
        for call in calls_of(name, "find", f"tool_{min(i, num_sequences - 1)}")
    ]
    return list(map(trajectory, names)), calls, [v for name in names for v in verdicts_of(name)]


def test_no_sequence_of_tools_is_over_its_share():
    rows = curated(*many(200, 60))
    kept = [name for name, row in rows.items() if row["accepted"]]
    common = [name for name in kept if name >= "t059"]
    assert 0.04 < len(common) / len(kept) <= 0.05
    assert {row["drop_reason"] for row in rows.values()} == {None, "sequence_quota"}


def test_in_a_small_set_the_quota_leaves_a_few_of_each():
    rows = curated(*many(10, 1))
    assert sum(row["accepted"] for row in rows.values()) == CurationConfig().sequence_min


@given(st.lists(st.integers(1, 60), min_size=1, max_size=50), st.floats(0.01, 1.0))
def test_the_quota_is_the_largest_that_satisfies_itself(sizes: list[int], share: float):
    config = CurationConfig(sequence_share=share, sequence_min=1)
    quota = sequence_quota(sizes, config)

    def fits(q: int) -> bool:
        return q <= share * sum(min(size, q) for size in sizes)

    assert quota == 1 or fits(quota)
    assert not any(fits(q) for q in range(quota + 1, max(sizes) + 1))


def test_the_order_of_rows_changes_nothing():
    trajectories, calls, verdicts = many(40, 15)
    first = curated(trajectories, calls, verdicts, sequence_min=1)
    for rows in (trajectories, calls, verdicts):
        random.Random(1).shuffle(rows)
    assert curated(trajectories, calls, verdicts, sequence_min=1) == first


def test_a_trajectory_that_is_not_graded_yet_waits_unless_nobody_will_grade_it():
    waiting, lost = trajectory("a"), trajectory("b", reason="infra_error")
    rows = curated([waiting, lost], [], [])
    assert {name: row["drop_reason"] for name, row in rows.items()} == {"b": "infra_error"}
    assert rows["b"]["score"] == 0.0


def test_another_set_is_another_curation():
    trajectories, calls, verdicts = many(5, 5)
    ids = {row["curation_id"] for row in curated(trajectories, calls, verdicts).values()}
    fewer = {row["curation_id"] for row in curated(trajectories[:4], calls, verdicts).values()}
    assert len(ids) == len(fewer) == 1
    assert ids != fewer
    again = [t | {"termination_reason": "refused"} for t in trajectories]  # superseded rows
    assert {row["curation_id"] for row in curated(again, calls, verdicts).values()} != ids


def test_loss_is_on_what_the_agent_wrote_but_its_mistakes():
    def turn(*ids: str) -> dict[str, Any]:
        return {"role": "assistant", "content": "", "tool_calls": [{"id": i} for i in ids]}

    result = {"role": "tool", "content": ""}
    messages = [
        {"role": "system"},
        {"role": "user", "content": "x"},
        turn("call_0"),  # fine
        result,
        turn("call_1", "call_2"),  # one of two was the agent's mistake
        result,
        result,
        turn("call_3"),  # met an injected error, was right all the same
        result,
        {"role": "assistant", "content": "Done."},
    ]
    errors = {"call_1": None, "call_3": "rate_limit"}
    calls = [
        {"tool_call_id": f"call_{i}", "is_error": f"call_{i}" in errors, "injected_outcome": None}
        for i in range(4)
    ]
    calls[3]["injected_outcome"] = "rate_limit"
    flags = train_turns(messages, faulty_turns(messages, calls))
    assert [i for i, flag in enumerate(flags) if flag] == [2, 7, 9]


def test_openings_compare_by_their_words():
    def opening(text: str) -> str:
        return first_words([{"role": "user", "content": text}])

    assert opening("Hi!  Please, book room 4.") == opening("hi please book room 4")
    assert opening("book room 4") != opening("book room 5")
    assert first_words([{"role": "user", "content": None}]) == ""


def test_equal_values_of_candidates_are_one_object_and_no_candidate_changes():
    flags = [True, False]
    made = [
        candidate_of(trajectory(name), calls_of(name, "find", "book"), verdicts_of(name), TASK)
        for name in "ab"
    ]
    one, other = (c._replace(train_turns=list(flags)) for c in made if c)
    shared = SharedValues()
    told = [shared.of(one), shared.of(other)]
    assert told == [one, other]
    assert told[0].sequence is told[1].sequence
    assert told[0].train_turns is told[1].train_turns
