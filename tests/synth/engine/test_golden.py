"""Golden outputs of the stages: who changes what a stage makes of the same input is told so.

Each stage has an input of its own, so that a change of one fails one test. Agents, personas and
tasks have theirs beside their other tests.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

from records.store.journal import ShardJournal
from records.tables.schemas import Row
from synth.curation import deciding
from synth.curation.settings.config import CurationConfig
from synth.episode import rollout
from synth.episode.rollout import RolloutConfig, plan_rollouts, run_rollout
from synth.episode.tools import code_environments as worlds
from synth.judging import grading
from synth.llm.client import LLM
from synth.llm.gateway import Gateway
from synth.pipeline import stages as pipeline
from tests.synth.authors import FIXED_GENERATOR
from tests.synth.clinic import CANCEL, DOMAIN, FIND, TASK, calls, catalogue, says
from tests.synth.curation.curated import curate
from tests.synth.curation.test_deciding import TASK as CURATED_TASK
from tests.synth.curation.test_deciding import calls_of, trajectory, verdicts_of
from tests.synth.golden import assert_golden
from tests.synth.judging.answers import judgement
from tests.synth.judging.test_grading import EPISODES, graded
from tests.synth.rollout_work import STORMY
from tests.synth.scripted import ScriptedApp
from tool_specs.domains.catalogue import domain_row, tool_rows

GOLDEN = Path(__file__).parent / "golden"
ROLES = dict.fromkeys(("agent", "user", "judge"), FIXED_GENERATOR)


def test_golden_catalogue() -> None:
    code = worlds.domain_row(), worlds.tool_rows()
    made = domain_row(DOMAIN), tool_rows(DOMAIN), code
    assert_golden(GOLDEN / "catalogue.yaml", pipeline.CATALOGUE_VERSION, made)


def test_golden_rollouts(tmp_path: Path) -> None:
    rows = asyncio.run(_played(tmp_path))
    assert {t["termination_reason"] for t in rows["trajectories"]} == {"user_done"}
    assert any(call["injected_outcome"] for call in rows["tool_calls"])
    assert_golden(GOLDEN / "rollouts.yaml", rollout.STAGE_VERSION, rows)


async def _played(folder: Path) -> dict[str, list[Row]]:
    config = RolloutConfig(attempts=6, episode=STORMY)
    rows: dict[str, list[Row]] = {"trajectories": [], "tool_calls": []}
    async with Gateway(ROLES, offline_app=lambda: ScriptedApp(_answer)) as gateway:
        with ShardJournal(folder / "journal.sqlite") as journal:
            llm = LLM(gateway, journal, stage="golden", invocation_id="golden")
            for item in plan_rollouts([TASK], config=config, roles=ROLES):
                made = await run_rollout(
                    item, llm, journal, catalogue=catalogue(), config=config, roles=ROLES
                )
                for table in rows:
                    rows[table] += made.tables[table]
    return rows


def _answer(body: dict[str, Any]) -> str | dict[str, Any]:
    """The agent calls until what it wants has worked; the user asks once more, then is done."""
    messages = body["messages"]
    if "tools" not in body:
        done = sum(message["role"] == "assistant" for message in messages) > 1
        return json.dumps({"message": "" if done else "Is it done?", "done": done})
    results = [m["content"] for m in messages if m["role"] == "tool"]
    if not results:
        return calls(FIND, CANCEL)
    if len(results) > 6 or any('"cancelled"' in result for result in results):
        return says("I have cancelled your appointment on March 4.")
    return calls(CANCEL)


def test_golden_grading(tmp_path: Path) -> None:
    rows = []
    for name, (actions, _) in EPISODES.items():
        result, *_ = graded(actions, tmp_path / name.replace(" ", "_"), ScriptedApp(judgement))
        # the grading's id and the judge's version hang on settings and a prompt, which have
        # versions of their own
        for row in result.tables["verdicts"]:
            version = row["checker_version"].partition("@")[0]
            rows.append(row | {"grading_id": "", "checker_version": version})
    assert_golden(GOLDEN / "grading.yaml", grading.STAGE_VERSION, rows)


def test_golden_curation() -> None:
    trajectories = [trajectory(f"t{i}") for i in range(8)]
    trajectories += [trajectory("again", opening="hello from T1!")]
    trajectories += [trajectory("late", reason="max_turns")]
    scores = {
        "t2": {"told": 0.0},
        "t3": {"goal": 0.0},
        "t4": {"tone": 0.0},
        "t5": {"supported": False},
    }
    ids = [t["trajectory_id"] for t in trajectories]
    rows = curate(
        grading_id="g",
        trajectories=trajectories,
        tool_calls=[call for i in ids for call in calls_of(i, "find", "book")],
        verdicts=[v for i in ids for v in verdicts_of(i, **scores.get(i, {}))],
        tasks=[CURATED_TASK],
        config=CurationConfig(sequence_min=2),
    )
    reasons = {row["drop_reason"] for row in rows}
    assert reasons >= {
        None,
        "sequence_quota",
        "near_duplicate",
        "failed_unsupported_claims",
        "max_turns",
    }
    assert_golden(GOLDEN / "curation.yaml", deciding.STAGE_VERSION, rows)
