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
from records.seeds import rng_of
from records.tables.schemas import Row
from records.tables.tables import TABLES
from synth.llm.settings.config import RoleConfig
from synth.rubrics.built_in import mentions
from synth.rubrics.criteria import Rubric
from synth.tasks.config import BLOCK, GrowthShares, TaskConfig
from synth.tasks.forms.forms import ALL_PLAIN
from synth.tasks.goals.goals import Asked, Draft, Fact, Goal
from synth.tasks.proof.proving import UnprovedError
from synth.tasks.sources import TaskSources
from synth.tasks.stage import (
    STAGE_VERSION,
    Dropped,
    TaskPlan,
    make_task,
    num_agents,
    num_personas,
    plan_tasks,
)
from synth.tasks.words.brief import REPAIRS, prompt_for, schema_for, user_brief, write_brief
from synth.tasks.words.checks import faults_of, says
from synth.tasks.words.readings import prompt_for_reading, questions_about
from tests.synth.authors import FIXED_GENERATOR, GENERATOR, FixedWords, with_offline
from tests.synth.golden import assert_golden
from tests.synth.scripted import ScriptedApp, model
from tool_specs.domains.catalogue import domain_id, tool_rows
from tool_specs.domains.domain import Domain, load_domain
from tool_specs.growth.grown_seed import GROWN
from tool_specs.language.schemas import Validator

GOLDEN = Path(__file__).parent / "golden/tasks.yaml"

PLAIN = TaskConfig(forms=ALL_PLAIN)
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
    settings = PLAIN
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
    work = make_task(plan, llm.llm, config=PLAIN, sources=sources(), generator=GENERATOR)
    return asyncio.run(work)


class BriefWriter(FixedWords):
    """Writes every value down, and nothing else."""

    async def structured(self, role: str, messages: list[Any], **where: Any) -> Any:
        self.asked.append({"messages": messages})
        text = messages[-1]["content"]
        several_at_once = re.search(r"the first (\d+) wishes, all", text)
        brought = int(several_at_once[1]) if several_at_once else 1
        steps = json.loads(re.search(r"## Steps\n```json\n(.*?)\n```", text, re.DOTALL)[1])  # type: ignore[index]
        said = [
            ", ".join(f"{f['label']} {f['value']}" for f in step["known"] if f["when"] == "opening")
            for step in steps
        ]
        wishes: list[str] = []
        for step, told in zip(steps, said, strict=True):
            text = f"I want {step['tool']} with {told}: {', '.join(step['result'])}".replace(
                "_", " "
            )
            if step.get("after"):
                wishes[-1] += f" Then {text}"
            else:
                wishes.append(text)
        kept = ", ".join(
            f"{f['value']}" for s in steps for f in s["known"] if f["when"] == "earlier"
        )
        several = (
            {}
            if not kept
            else {
                "keep": f"Keep {kept} for later.",
                "returns": [
                    {"situation": "You are back.", "opening": " ".join(["Hello again.", *wishes])}
                    for _ in range(max(s["conversation"] for s in steps) - 1)
                ],
            }
        )
        return several | {
            "person": "Bo Li",
            "relation": "a customer",
            "implausible": "",
            "situation": "Things have come up.",
            "opening": " ".join(["Hello.", *wishes[:brought]]),
            "wishes": wishes,
            "asks": [label for step in steps for label in step["result"]],
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
            await make_task(plan, llm, config=PLAIN, sources=sources(), generator=GENERATOR)
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
        description="Move a bike to the place that has most room.",
        arguments={},
        labels={},
        known=(fact("bike", "BK-1"), fact("day", "2026-05-06", when="asked"), fact("now", True)),
        asks=(Asked(label="new place", values=("PIER",)),),
        steps=(),
        writes=True,
    )
    known = (fact("bike", "BK-2"), fact("day", "2026-05-07"))
    return Draft(
        variant="normal",
        goals=(goal, goal.model_copy(update={"known": known, "asks": ()})),
        initial_state={},
    )


COMPLETE: dict[str, Any] = {
    "implausible": "",
    "person": "Bo Li",
    "relation": "a courier of the shop",
    "situation": "Two bikes stand in the way.",
    "opening": "Please move bike BK-1.",
    "wishes": ["Move bike BK-1. Where is it now?", "Move bike BK-2."],
    "asks": ["Where is it now"],
}


def faults(draft: Draft | None = None, **changes: Any) -> list[str]:
    return faults_of(
        draft or two_goals(),
        COMPLETE | changes,
        persona="Bo Li",
        descriptions=["Move a bike to the place that has most room."],
    )


def named() -> Draft:
    """The facts name a person."""
    draft = two_goals()
    fact = Fact(label="rider name", value="Ada Lovelace", param="p", needed=True)
    first, second = draft.goals
    later = second.model_copy(update={"known": (*second.known, fact)})
    return draft.model_copy(update={"goals": (first, later)})


def test_what_the_goal_itself_says_may_be_said() -> None:
    draft = two_goals()
    first, second = draft.goals
    told = first.model_copy(update={"wish": "Find out whether the pier is the new place."})
    said = "Please move bike BK-1. Is it at the pier?"
    assert faults(opening=said)
    assert faults(draft.model_copy(update={"goals": (told, second)}), opening=said) == []
    address = Fact(label="address", value="2 Pier Road", param="p", needed=True)
    told = first.model_copy(update={"known": (*first.known, address)})
    said = "Please move bike BK-1, to 2 Pier Road."
    assert faults(draft.model_copy(update={"goals": (told, second)}), opening=said) == []


@pytest.mark.parametrize(
    ("label", "value", "text"),
    [
        ("reminders", "none", "And no reminders for me please."),
        ("contribution month", "2026-08-01", "It is my share for August 2026."),
        ("day", "2026-08-01", "It is for August 1."),
        ("contribution month", "2026-05-01", "you can take it for may 2026"),
        ("now", False, "That can wait."),
    ],
)
def test_what_people_say_in_words_of_their_own_counts_as_said(
    label: str, value: Any, text: str
) -> None:
    assert says(text, Fact(label=label, value=value, param="p", needed=True))


@pytest.mark.parametrize(
    ("label", "value"),
    [
        ("day", "2026-08-01"),
        ("contribution month", "2026-08-01"),
        ("contribution month", "2026-05-01"),
        ("reminders", "weekly"),
        ("scope", "all"),
        ("pieces", 14),
    ],
)
def test_a_value_that_stands_nowhere_is_not_said(label: str, value: Any) -> None:
    assert not says(
        "You may book it, for October 2026.", Fact(label=label, value=value, param="p", needed=True)
    )


def in_order() -> Draft:
    """The second goal is to be done after the first, in one wish with it."""
    draft = two_goals()
    later = draft.goals[1].model_copy(update={"after": True})
    return draft.model_copy(update={"goals": (draft.goals[0], later)})


def test_complete_words_have_no_fault() -> None:
    assert faults() == []
    assert faults(named(), person="Ada Lovelace") == []


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"opening": "Please move my bike."}, "bike BK-1 in the opening is missing"),
        ({"opening": "Move BK-1 on 6 May."}, "the opening tells day 2026-05-06, which is told"),
        (
            {"wishes": [COMPLETE["wishes"][0], "BK-2, as on May 6."]},
            "wish 2 tells day 2026-05-06, which is told only when asked",
        ),
        ({"asks": ["its new place"]}, "by which new place is asked for, do not stand in"),
        ({"asks": ["and the"]}, "do not stand in"),
        ({"asks": ["?"]}, "do not stand in"),
        ({"asks": ["is it no"]}, "do not stand in"),
        ({"situation": "It is for May 6."}, "the situation tells day 2026-05-06, which is told"),
        ({"situation": "It goes to PIER."}, "the situation says new place PIER, which the person"),
        ({"opening": "Run move_bike for BK-1."}, "the opening holds 'move_bike'"),
        (
            {"opening": "BK-1: move it to the place that has more room."},
            "repeats a description word for word: 'to the place that has'",
        ),
        ({"person": "Ada"}, "`person` is 'Ada', whom neither the persona"),
        ({"person": "BK-2"}, "`person` is 'BK-2', whom neither the persona"),
    ],
)
def test_every_fault_is_named(changes: dict[str, Any], fault: str) -> None:
    if "repeats" in fault:
        assert faults(**changes) == []  # five words in a row
        changes = {"opening": "BK-1: move it to the place that has most room."}
        fault = "'to the place that has most'"
    assert fault in "; ".join(faults(**changes))


def test_what_waits_for_another_goal_stands_in_its_wish_and_in_the_opening() -> None:
    draft = in_order()
    apart = {"wishes": COMPLETE["wishes"][:1]}
    assert not Validator(schema_for(draft)).is_valid(COMPLETE)
    assert Validator(schema_for(draft)).is_valid(COMPLETE | apart)
    missing = "; ".join(faults(draft, **apart))
    assert "bike BK-2 in the opening is missing" in missing
    assert "bike BK-2 in wish 1 is missing" in missing
    said = "Move BK-1 and tell me where is it now, then BK-2, on 7 May."
    assert faults(draft, opening=said, wishes=[said]) == []


def briefed(
    app: ScriptedApp, folder: Path, draft: Draft | None = None
) -> tuple[dict[str, Any], list[Row]]:
    """The brief of a draft with `app` as the generator, and the rows of its requests."""

    async def write() -> tuple[dict[str, Any], list[Row]]:
        async with model(app, folder, {"generator": RoleConfig()}) as llm:
            brief = await write_brief(
                draft or two_goals(), llm, item_id="i", domain={}, persona=persona()
            )
            return brief, llm.rows()

    return asyncio.run(write())


def test_words_are_asked_for_again_until_nothing_is_lacking(tmp_path: Path) -> None:
    first = COMPLETE | {"opening": "Please move my bike."}
    second = COMPLETE | {"asks": ["And then?"]}
    answers = iter([first, second, COMPLETE])
    app = ScriptedApp(lambda body: json.dumps(next(answers)))
    brief, rows = briefed(app, tmp_path)
    assert [(row["step"], row["attempt"]) for row in rows] == [("brief", n) for n in range(3)]
    opening, *talk = app.requests[2]["messages"][-5:]
    assert opening == app.requests[0]["messages"][-1]
    assert [json.loads(message["content"]) for message in talk[::2]] == [first, second]
    assert "bike BK-1 in the opening" in talk[1]["content"]
    assert "by which new place is asked for" in talk[3]["content"]
    for part in ("person", "relation", "situation", "opening", "wishes"):
        assert brief[part] == COMPLETE[part]


class Readers:
    """A generator that writes the same words again and again, and reads as it is told: `takes`
    chooses among the texts of a question."""

    def __init__(self, *takes: Any) -> None:
        self.takes = list(takes)
        self.asked: list[str] = []

    def __call__(self, body: dict[str, Any]) -> str:
        text = body["messages"][-1]["content"]
        if "## Questions" not in text:
            return json.dumps(COMPLETE)
        self.asked.append(text)
        choices = json.loads(text.split("## Questions\n```json\n")[1].split("\n```")[0])[0][
            "choices"
        ]
        meant = self.takes.pop(0)
        letter = next((k for k, v in choices.items() if v == meant), "unclear")
        return json.dumps({"answers": [{"why": "It says so.", "choice": letter}]})


def choosing() -> Draft:
    draft = two_goals()
    change = {
        "wish": "Move the cheapest bike.",
        "misreadings": ("Move any bike.", "Move all bikes."),
    }
    goals = (draft.goals[0].model_copy(update=change), draft.goals[1])
    return draft.model_copy(update={"goals": goals})


def test_words_that_readers_take_for_what_is_meant_are_kept(tmp_path: Path) -> None:
    readers = Readers("Move the cheapest bike.", "Move the cheapest bike.")
    brief, rows = briefed(ScriptedApp(readers), tmp_path, choosing())
    assert brief["opening"] == COMPLETE["opening"]
    assert [row["step"] for row in rows] == ["brief", "reading-0-0", "reading-0-1"]
    assert readers.asked[0] != readers.asked[1]
    assert "Move the cheapest bike." not in readers.asked[0].split("## Questions")[0]


def test_misread_words_are_written_again_and_dropped_when_that_does_not_help(
    tmp_path: Path,
) -> None:
    meant = "Move the cheapest bike."
    app = ScriptedApp(Readers(meant, "Move any bike.", meant, meant))
    _, rows = briefed(app, tmp_path / "again", choosing())
    assert [row["step"] for row in rows if "brief" in row["step"]] == ["brief", "brief-again"]
    told = app.requests[3]["messages"][-1]["content"]
    assert "wish 1 means: Move the cheapest bike. A reader took it for: Move any bike." in told
    app = ScriptedApp(Readers(meant, "?", "Move all bikes.", meant))
    with pytest.raises(UnprovedError, match="took it for: Move all bikes") as caught:
        briefed(app, tmp_path / "never", choosing())
    assert caught.value.reason == "ambiguous"


def test_readers_see_every_value_that_is_known_under_a_label_of_its_own() -> None:
    draft = choosing()
    asked = questions_about(draft, rng_of("i", "reader", 0))
    text = prompt_for_reading(draft, COMPLETE, asked).messages[-1]["content"]
    for fact in (fact for goal in draft.goals for fact in goal.known):
        assert json.dumps(fact.value) in text
    assert '"bike (2)": "BK-2"' in text


def test_what_nobody_would_want_is_dropped_with_the_reason_and_asked_once(tmp_path: Path) -> None:
    why = "Nobody books a bike that they give back in the same breath."
    app = ScriptedApp(lambda body: json.dumps(COMPLETE | {"implausible": why, "opening": "Hello."}))
    with pytest.raises(UnprovedError, match="in the same breath") as caught:
        briefed(app, tmp_path)
    assert caught.value.reason == "implausible"
    assert len(app.requests) == 1


def test_words_that_stay_incomplete_fail_the_item(tmp_path: Path) -> None:
    app = ScriptedApp(lambda body: json.dumps(COMPLETE | {"opening": "Hello."}))
    with pytest.raises(ItemError, match="bike BK-1 in the opening is missing") as caught:
        briefed(app, tmp_path)
    assert caught.value.reason == "brief_incomplete"
    assert len(app.requests) == 1 + REPAIRS


def test_facts_stand_once_and_labels_name_one_value() -> None:
    first, second = two_goals().goals
    known = (second.known[0], first.known[1])  # the same day again
    goals = (first, second.model_copy(update={"known": known}))
    facts = user_brief(two_goals().model_copy(update={"goals": goals}), COMPLETE)["facts"]
    assert [(f["label"], f["value"], f["when"], f["goal"]) for f in facts] == [
        ("bike", "BK-1", "opening", 0),
        ("day", "2026-05-06", "asked", 0),
        ("now", True, "opening", 0),
        ("bike (2)", "BK-2", "opening", 1),
    ]


def test_schema_wants_a_wish_per_goal_and_a_question_per_result() -> None:
    validator = Validator(schema_for(two_goals()))
    assert validator.is_valid(COMPLETE)
    assert not validator.is_valid(COMPLETE | {"wishes": COMPLETE["wishes"][:1]})
    assert not validator.is_valid(COMPLETE | {"asks": []})


def test_kept_back_values_do_not_stand_in_what_is_wished_for() -> None:
    goal = two_goals().goals[0].model_copy(update={"description": "Get it on 2026-05-06."})
    draft = two_goals().model_copy(update={"goals": (goal,)})
    text = prompt_for(draft, item_id="i", domain={}, persona=persona()).messages[-1]["content"]
    assert "Get it on the day." in text


def test_shares_of_wishes_must_fit_together() -> None:
    with pytest.raises(ValueError, match=r"may add up to 1 at most, got 0\.7 and 0\.6"):
        TaskConfig(simple=0.7, complex=0.6)


def test_golden_tasks() -> None:
    writer = BriefWriter()
    rows = [made(plan, writer) for plan in plans(12, FIXED_GENERATOR)]
    asked = [ask["messages"] for ask in writer.asked]
    assert_golden(GOLDEN, STAGE_VERSION, {"rows": rows, "asked": asked})


def test_tasks_on_the_same_tools_are_of_one_split() -> None:
    """What is held out is a combination of tools, in whatever state and with whatever values."""
    config = PLAIN.model_copy(update={"heldout_share": 0.4})
    splits: dict[tuple[str, ...], set[str]] = {}
    for plan in plans(40):
        row = asyncio.run(
            make_task(
                plan, BriefWriter().llm, config=config, sources=sources(), generator=GENERATOR
            )
        )
        assert isinstance(row, dict)
        tools = tuple(sorted(step["tool"] for step in row["reference_plan"]))
        if tools:
            splits.setdefault(tools, set()).add(row["split"])
    assert {len(found) for found in splits.values()} == {1}
    assert {split for found in splits.values() for split in found} == {"train", "heldout_task"}
    assert len(splits) < 40


def test_grown_rows_stay_in_their_split() -> None:
    growth = GrowthShares(shares={"30": 1.0})
    config = PLAIN.model_copy(update={"heldout_share": 0.4, "growth": growth})
    seen = set()
    for plan in plans(12):
        row = asyncio.run(
            make_task(
                plan, BriefWriter().llm, config=config, sources=sources(), generator=GENERATOR
            )
        )
        if isinstance(row, dict):
            seen.add(row["split"])
            assert row["initial_state"][GROWN]["split"] == row["split"]
    assert seen == {"train", "heldout_task"}
