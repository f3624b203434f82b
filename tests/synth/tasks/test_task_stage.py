"""The task stage: one row per item, planned the same at any count, words that lack nothing."""

import asyncio
import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from records.errors import ItemError
from records.tables.schemas import TABLES, Row
from synth.llm.settings.config import RoleConfig
from synth.rubrics.built_in import mentions
from synth.rubrics.criteria import Rubric
from synth.tasks.config import BLOCK, TaskConfig
from synth.tasks.goals.goals import Asked, Draft, Fact, Goal
from synth.tasks.stage import (
    STAGE_VERSION,
    Dropped,
    TaskPlan,
    TaskSources,
    make_task,
    num_agents,
    num_personas,
    plan_tasks,
)
from synth.tasks.words import REPAIRS, lacks, prompt_for, schema_for, user_brief, write_brief
from tests.synth.authors import FIXED_GENERATOR, GENERATOR, FixedWords, with_offline
from tests.synth.golden import assert_golden
from tests.synth.scripted import ScriptedApp, model
from tool_specs.domains.catalogue import domain_id, tool_rows
from tool_specs.domains.domain import Domain, load_domain
from tool_specs.language.schemas import Validator

GOLDEN = Path(__file__).parent / "golden/tasks.yaml"

BAKERY = Path(__file__).parents[1] / "fixtures" / "bakery.yaml"


@cache
def bakery() -> Domain:
    return load_domain(BAKERY)


def sources() -> TaskSources:
    tools = {row["tool_id"]: row for row in tool_rows(bakery())}
    return TaskSources(tools=tools, domains={domain_id(bakery()): bakery()}, servers={})


def agent(number: int = 0, **changes: Any) -> Row:
    tools = [tool_id for tool_id, row in sources().tools.items() if row["split"] == "train"]
    row = {
        "agent_id": f"agent-{number}",
        "domain_id": domain_id(bakery()),
        "server": None,
        "tool_ids": tools,
        "split": "train",
    }
    return row | changes


def persona(number: int = 0) -> Row:
    return {
        "persona_id": f"persona-{number}",
        "name": "Bo Li",
        "background": "Bakes bread.",
        "communication_style": "plain",
        "preferences": ["short answers"],
        "disclosure": "mixed",
        "split": "train",
    }


def plans(count: int, generator: RoleConfig = GENERATOR) -> list[TaskPlan]:
    settings = TaskConfig()
    return plan_tasks(
        settings,
        [agent(i) for i in range(num_agents(count, settings))],
        [persona(i) for i in range(num_personas(count, settings))],
        seed=1,
        count=count,
        generator=generator,
    )


def made(plan: TaskPlan, words: FixedWords | None = None) -> Row | Dropped:
    llm = words or BriefWriter()
    work = make_task(plan, llm.llm, config=TaskConfig(), sources=sources(), generator=GENERATOR)
    return asyncio.run(work)


class BriefWriter(FixedWords):
    """Writes every value down, and nothing else."""

    async def structured(self, role: str, messages: list[Any], **where: Any) -> Any:
        self.asked.append({"messages": messages})
        text = messages[-1]["content"]
        steps = json.loads(re.search(r"## Steps\n```json\n(.*?)\n```", text, re.DOTALL)[1])  # type: ignore[index]
        said = [
            ", ".join(f"{f['label']} {f['value']}" for f in step["known"] if f["when"] == "opening")
            for step in steps
        ]
        wishes = [f"{step['description']} {told}" for step, told in zip(steps, said, strict=True)]
        return {
            "opening": f"Hello. {said[0]}",
            "wishes": wishes,
            "facts": [f"{f['label']} is {f['value']}" for step in steps for f in step["known"]],
        }


def test_a_plan_only_grows_with_the_count() -> None:
    assert plans(3 * BLOCK)[:70] == plans(70)
    assert len({plan.item_id for plan in plans(3 * BLOCK)}) == 3 * BLOCK


def test_agents_get_their_number_of_tasks_and_personas_mix() -> None:
    planned = plans(BLOCK)
    by_agent: dict[str, set[str]] = {}
    for plan in planned:
        assert plan.agent is not None
        assert plan.persona is not None
        by_agent.setdefault(plan.agent["agent_id"], set()).add(plan.persona["persona_id"])
    assert len(by_agent) == BLOCK // 8
    assert all(len(met) >= 4 for met in by_agent.values())


def test_without_agent_or_persona_the_task_is_dropped() -> None:
    plan = plans(1)[0]
    assert made(replace(plan, agent=None)) == Dropped("no_agent")
    assert made(replace(plan, persona=None)) == Dropped("no_persona")


def test_what_cannot_run_is_dropped_with_a_reason() -> None:
    plan = plans(1)[0]
    gone = replace(plan, agent=agent(server="gone", domain_id=None))
    assert made(gone) == Dropped("server_unavailable")
    bare = [made(replace(plan, agent=agent(tool_ids=[]))) for plan in plans(12)]
    assert {made for made in bare if isinstance(made, Dropped)} == {Dropped("no_goal_found")}
    assert all(row["variant"] == "no_tool" for row in bare if isinstance(row, dict))


def test_rows_have_the_columns_and_say_everything(tmp_path: Path) -> None:
    async def make(llm: Any) -> list[Any]:
        return [
            await make_task(plan, llm, config=TaskConfig(), sources=sources(), generator=GENERATOR)
            for plan in plans(24)
        ]

    rows = with_offline(tmp_path, make)
    assert all(isinstance(row, dict) for row in rows)
    for row in rows:
        assert set(row) == set(TABLES["tasks"].schema.names) - {"run_id", "schema_version"}
        assert Rubric.model_validate(row["rubric"]).model_dump(mode="json") == row["rubric"]
        assert row["num_steps"] == len(row["reference_plan"])
        assert row["token_budget"] > 1000
        assert row["max_turns"] > row["num_steps"]
        brief = row["user_brief"]
        assert brief["wishes"]
        for fact in brief["facts"]:
            if (
                fact["goal"] == 0
                and fact["when"] == "opening"
                and not isinstance(fact["value"], bool)
            ):
                assert mentions(brief["opening"], fact["value"])
        labels = [fact["label"] for fact in brief["facts"]]
        assert len(set(labels)) == len(labels)


def test_splits_take_the_strongest_parent() -> None:
    for plan in plans(12):
        row = made(replace(plan, agent=agent(split="heldout_domain")))
        assert isinstance(row, dict)
        assert row["split"] == "heldout_domain"


def two_goals() -> Draft:
    def fact(label: str, value: Any, **more: Any) -> Fact:
        return Fact(label=label, value=value, param="p", needed=True, **more)

    goal = Goal(
        tool="move",
        description="Move a bike.",
        arguments={},
        labels={},
        known=(fact("bike", "BK-1"), fact("day", "2026-05-06", when="asked"), fact("now", True)),
        asks=(Asked(label="new place", values=("PIER",)),),
        steps=(),
        writes=True,
    )
    other = goal.model_copy(update={"known": (fact("bike", "BK-2"), fact("day", "2026-05-06"))})
    return Draft(variant="normal", goals=(goal, other), initial_state={})


COMPLETE = {
    "opening": "Please move bike BK-1.",
    "wishes": ["Move bike BK-1 and tell me the new place.", "Move bike BK-2."],
    "facts": ["It is bike BK-1.", "On May 6.", "Yes, now.", "It is bk-2.", "On 6 May 2026."],
}


def briefed(app: ScriptedApp, folder: Path) -> tuple[dict[str, Any], list[Row]]:
    """The brief of two goals with `app` as the generator, and the rows of its requests."""

    async def write() -> tuple[dict[str, Any], list[Row]]:
        async with model(app, folder, {"generator": RoleConfig()}) as llm:
            brief = await write_brief(two_goals(), llm, item_id="i", domain={}, persona=persona())
            return brief, llm.rows()

    return asyncio.run(write())


def test_words_are_asked_for_again_until_nothing_is_lacking(tmp_path: Path) -> None:
    first = COMPLETE | {"opening": "Please move my bike."}
    second = COMPLETE | {"facts": [*COMPLETE["facts"][:-1], "Some day."]}
    answers = iter([first, second, COMPLETE])
    app = ScriptedApp(lambda body: json.dumps(next(answers)))
    brief, rows = briefed(app, tmp_path)
    assert [(row["step"], row["attempt"]) for row in rows] == [("brief", n) for n in range(3)]
    opening, *talk = app.requests[2]["messages"][-5:]
    assert opening == app.requests[0]["messages"][-1]
    assert [json.loads(message["content"]) for message in talk[::2]] == [first, second]
    assert "bike BK-1 in the opening" in talk[1]["content"]
    assert "day 2026-05-06 in fact 5" in talk[3]["content"]
    assert brief["opening"] == "Please move bike BK-1. Please tell me the new place."
    assert brief["wishes"][0] == COMPLETE["wishes"][0]
    assert brief["wishes"][1].endswith("Please tell me the new place.")


def test_words_that_stay_incomplete_fail_the_item(tmp_path: Path) -> None:
    app = ScriptedApp(lambda body: json.dumps(COMPLETE | {"opening": "Hello."}))
    with pytest.raises(ItemError, match="lacks bike BK-1 in the opening") as caught:
        briefed(app, tmp_path)
    assert caught.value.reason == "brief_incomplete"
    assert len(app.requests) == 1 + REPAIRS


def test_facts_stand_once_and_labels_name_one_value() -> None:
    facts = user_brief(two_goals(), COMPLETE)["facts"]
    assert [(f["label"], f["value"], f["when"], f["goal"]) for f in facts] == [
        ("bike", "BK-1", "opening", 0),
        ("day", "2026-05-06", "asked", 0),
        ("now", True, "opening", 0),
        ("bike (2)", "BK-2", "opening", 1),
    ]


def test_schema_wants_a_wish_per_goal_and_a_fact_per_value() -> None:
    validator = Validator(schema_for(two_goals()))
    assert validator.is_valid(COMPLETE)
    assert not validator.is_valid(COMPLETE | {"wishes": COMPLETE["wishes"][:1]})
    assert not validator.is_valid(COMPLETE | {"facts": COMPLETE["facts"][:4]})
    assert lacks(two_goals(), COMPLETE) == []


def test_kept_back_values_do_not_stand_in_what_is_wished_for() -> None:
    goal = two_goals().goals[0].model_copy(update={"description": "Get it on 2026-05-06."})
    draft = two_goals().model_copy(update={"goals": (goal,)})
    text = prompt_for(draft, domain={}, persona=persona()).messages[-1]["content"]
    assert "Get it on the day." in text


def test_shares_of_wishes_must_fit_together() -> None:
    with pytest.raises(ValueError, match=r"may add up to 1 at most, got 0\.7 and 0\.6"):
        TaskConfig(simple=0.7, complex=0.6)


def test_golden_tasks() -> None:
    writer = BriefWriter()
    rows = [made(plan, writer) for plan in plans(12, FIXED_GENERATOR)]
    asked = [ask["messages"] for ask in writer.asked]
    assert_golden(GOLDEN, STAGE_VERSION, {"rows": rows, "asked": asked})
