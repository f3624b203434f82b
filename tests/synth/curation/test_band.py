"""The band of pass rates: decided at curation alone, over all attempts at a task."""

from records.digest import digest
from records.tables.schemas import Row
from synth.curation.candidates import CurationCandidate
from synth.curation.deciding import CurationRules, decide_all
from synth.curation.settings.config import CurationConfig


def attempt(
    task: str, number: int, *, passes: bool, reason: str = "user_done"
) -> CurationCandidate:
    own = digest(task, number)
    return CurationCandidate(
        trajectory_id=own,
        task_id=task,
        bug_id=None,
        split="train",
        termination_reason=reason,
        score=1.0,
        drop_reason=None if passes else "failed_state",
        sequence=(own,),
        opening=own.encode(),
        train_turns=[],
        judge_status=None,
        failed_criterion=None,
        decided_by="code",
        self_judged=False,
        attributed_to=None if passes else "agent",
    )


ATTEMPTS = [attempt(f"task-{c}", i, passes=i < c) for c in range(5) for i in range(4)]
"""Tasks of four attempts, of which none, one, ... all pass."""


def reasons(faulty: tuple[str, ...] = (), **config: object) -> dict[str, list[str | None]]:
    rows = {row["trajectory_id"]: row for row in decided(faulty, **config)}
    return {
        f"task-{c}": [rows[digest(f"task-{c}", i)]["drop_reason"] for i in range(4)]
        for c in range(5)
    }


def decided(faulty: tuple[str, ...] = (), **config: object) -> list[Row]:
    settings = CurationConfig.model_validate(config)
    return decide_all(ATTEMPTS, CurationRules("g", settings, faulty=faulty))


def test_what_another_run_s_agent_passes_is_not_faulty() -> None:
    found = reasons(faulty=("task-0", "task-2"))
    assert found["task-0"] == ["faulty_task"] * 4
    assert found["task-2"] == [None, None, "failed_state", "failed_state"]


def test_one_attempt_alone_is_no_rate() -> None:
    alone = [attempt("alone", 0, passes=True)]
    settings = CurationConfig.model_validate({"band": [0.2, 0.8]})
    [row] = decide_all(alone, CurationRules("g", settings))
    assert row["accepted"]


def test_without_a_band_every_pass_is_kept() -> None:
    assert reasons()["task-4"] == [None] * 4
    assert reasons()["task-1"] == [None, *["failed_state"] * 3]


def test_what_passes_outside_the_band_is_dropped_and_failures_keep_their_reason() -> None:
    found = reasons(band=[0.3, 0.9])
    assert found["task-4"] == ["outside_band"] * 4
    assert found["task-1"] == ["outside_band", *["failed_state"] * 3]
    assert found["task-2"] == [None, None, "failed_state", "failed_state"]
    assert found["task-0"] == ["failed_state"] * 4


def test_both_ends_belong_to_the_band() -> None:
    found = reasons(band=[0.25, 1.0])
    assert found["task-1"][0] is None
    assert found["task-4"] == [None] * 4


def test_attempts_that_ended_outside_the_agents_reach_measure_nothing() -> None:
    ends = [attempt("t", i, passes=i == 0, reason="user_done") for i in range(2)]
    spoiled = [attempt("t", i, passes=False, reason="infra_error") for i in range(2, 9)]
    config = CurationConfig(band=(0.4, 0.6))
    rows = decide_all([*ends, *spoiled], CurationRules("g", config))
    assert [row["drop_reason"] for row in rows].count(None) == 1


def test_every_attempt_at_a_faulty_task_is_dropped_for_it() -> None:
    assert reasons(("task-0",))["task-0"] == ["faulty_task"] * 4
    assert reasons(("task-0",))["task-2"] == reasons()["task-2"]


def test_another_band_is_another_decision_and_none_is_the_one_of_before() -> None:
    ids = [decided((), band=band)[0]["curation_id"] for band in (None, [0.1, 0.9], [0.2, 0.9])]
    assert len(set(ids)) == 3
    assert decided()[0]["curation_id"] == ids[0]
