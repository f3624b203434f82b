"""Rows of a grading by a judge: truth told statement by statement, and decisions with marks."""

from collections.abc import Sequence
from typing import Any

from records.store.commits import ItemStatus
from records.store.dataset import Dataset
from records.tables.schemas import Row
from tests.records.rows import row

REPLY = 7
"""Place of the last message of `small_dataset.conversation`."""

BY_CODE = [
    {"id": "s1", "message": REPLY, "says": "Done.", "finding": "open"},
    {"id": "s2", "message": REPLY, "says": "It costs 20 EUR.", "finding": "matched"},
    {"id": "s3", "message": REPLY, "says": "I wrote to the harbour.", "finding": "open"},
]
BY_JUDGE = [
    {**BY_CODE[0], "finding": "follows", "evidence": "", "quote": "", "supported": True},
    {
        **BY_CODE[2],
        "finding": "not_shown",
        "evidence": "No call wrote to anybody.",
        "quote": "",
        "supported": True,
    },
]


def verdict(trajectory_id: str, criterion: str, by: str, passed: bool | None, **more: Any) -> Row:
    kind = more.pop("kind", "nl")
    given = {"grading_id": "grading-2", "mandatory": True, "weight": 1.0, "split": "train"}
    given |= {"checker_version": f"{by}-model@1", "evidence": f"{by} says so"}
    return row(
        "verdicts",
        trajectory_id=trajectory_id,
        criterion_id=criterion,
        kind=kind,
        checked_by=by,
        passed=passed,
        score=float(bool(passed)),
        **(given | more),
    )


def told_false(trajectory_id: str) -> list[Row]:
    """Code passes the goal and leaves truth open; the judge finds one statement false."""
    why = "'I wrote to the harbour.' is not shown: No call wrote to anybody."
    return [
        verdict(trajectory_id, "goal", "code", True, kind="state"),
        verdict(trajectory_id, "truth", "code", None, details=BY_CODE),
        verdict(
            trajectory_id,
            "truth",
            "judge",
            False,
            details=BY_JUDGE,
            evidence=why,
            quote="I wrote to the harbour.",
        ),
        verdict(trajectory_id, "manners", "judge", True),
        verdict(trajectory_id, "helpful", "judge", True, mandatory=False),
    ]


def decision(trajectory_id: str, reason: str | None, **more: Any) -> Row:
    given = {"curation_id": "curation-2", "grading_id": "grading-2", "split": "train"}
    given |= {"score": 0.75, "train_turns": [False, False, True, False, False, True, False, True]}
    given |= {"decided_by": "code_and_judge", "judge_status": "measured", "self_judged": False}
    return row(
        "curation",
        trajectory_id=trajectory_id,
        accepted=reason is None,
        drop_reason=reason,
        **(given | more),
    )


def curate(
    dataset: Dataset, decisions: Sequence[Row], verdicts: Sequence[Row] = (), shard: int = 0
) -> None:
    """Commit a curation, which is the newest from then on."""
    dataset.commit(
        run_id="run-1",
        stage="curation",
        shard=shard,
        tables={"verdicts": list(verdicts), "curation": list(decisions)},
        items={decisions[0]["curation_id"]: ItemStatus("kept", None)},
    )
