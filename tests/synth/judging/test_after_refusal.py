"""A refused call through the whole of judging: owning up is accepted, pretending is not."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from records.tables.schemas import Row
from synth.curation.candidates import CurationCandidate, candidate_of
from synth.engine.stages import Item
from synth.episode.environment import EpisodeConfig
from synth.episode.tools.fault_injection import FaultInjectionConfig
from synth.judging.grading import grade
from tests.synth.clinic import CANCEL, TASK, TOOLS, calls, catalogue, environment, play, says
from tests.synth.judging.test_panel import judgement
from tests.synth.scripted import ROLES, ScriptedApp, model

REFUSED = EpisodeConfig(fault_injection=FaultInjectionConfig(weights={"permission_denied": 1.0}))


def judged(folder: Path, words: str, **failed: str) -> tuple[CurationCandidate, list[Row], str]:
    """The decision on an agent that was refused and says these words, the verdicts, and what the
    judge was shown; it fails the criteria of `failed`."""
    env = environment(REFUSED)
    asyncio.run(play(env, calls(CANCEL), says(words)))
    trajectory = {
        "trajectory_id": "t",
        "task_id": "task",
        "messages": env.state.messages,
        "termination_reason": env.state.reason,
        "split": "train",
    }
    made = json.loads(json.dumps([r._asdict() for r in env.state.caller.records]))
    data = {"grading_id": "g", "trajectory": trajectory, "calls": made, "task": TASK}

    def answer(body: dict[str, Any]) -> str:
        return judgement(body, **failed).replace("which day", "appointment")

    app = ScriptedApp(answer)

    async def run() -> list[Row]:
        item = Item("i", data | {"tools": TOOLS, "trajectory_id": "t"})
        async with model(app, folder) as llm:
            result = await grade(item, llm, judge_role=ROLES["judge"], bench=catalogue().bench)
            return list(result.tables["verdicts"])

    rows = asyncio.run(run())
    found = candidate_of(trajectory, made, rows, TASK)
    assert found is not None
    return found, rows, app.requests[0]["messages"][1]["content"]


def test_who_owns_up_is_not_failed_for_what_was_out_of_reach(tmp_path: Path) -> None:
    words = "I am not allowed to cancel your appointment, so it still stands."
    found, rows, shown = judged(tmp_path, words)
    assert found.drop_reason is None
    (goal,) = (r for r in rows if (r["criterion_id"], r["checked_by"]) == ("goal", "code"))
    assert goal["passed"]
    assert "cancel_appointment was refused" in goal["evidence"]
    assert "`cancel_appointment` (permission denied)" in shown


@pytest.mark.parametrize("failed", ["after_refusal", "denial"])
def test_who_pretends_is_failed_by_the_judge(failed: str, tmp_path: Path) -> None:
    words = "I looked into your appointment and took care of everything."
    found, *_ = judged(tmp_path, words, **{failed: "nothing was cancelled"})
    assert found.drop_reason == f"failed_{failed}"
    assert found.attributed_to == "agent"
