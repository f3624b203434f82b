"""Each setting of the task stage does what it says."""

import asyncio
from collections import Counter
from random import Random
from typing import Any, cast

import pytest

from records.digest import digest
from records.errors import ConfigError
from records.settings import validate_as, with_overrides
from records.tables.schemas import Row
from records.tables.splits import own_split
from sandboxes.mcp.servers import builtin_servers
from synth.episode.tools.code_environments import CODE_DOMAIN, CodeEnvironment
from synth.rubrics.criteria import decide
from synth.rubrics.reward import rubric_of
from synth.tasks.code_tasks import CodeTask, CodeTasks
from synth.tasks.composing import DomainTasks, GoalMix
from synth.tasks.config import BLOCK, TaskConfig
from synth.tasks.forms.forms import ALL_PLAIN
from synth.tasks.goals.goals import Draft, Variant
from synth.tasks.goals.variants import ServerVariantShares, VariantShares, variant_of
from synth.tasks.lengths import Complexity
from synth.tasks.servers.drafting import draft_for_server
from synth.tasks.sources import TaskSources
from synth.tasks.stage import TaskPlan, make_task, num_personas, persona_number
from tests.sandboxes.code.code_cases import project
from tests.synth.authors import GENERATOR, FixedWords
from tests.synth.task_cases import SHARES, cases, domains
from tests.synth.tasks.test_task_stage import BriefWriter, agent, made, persona, plans, sources

NORMAL = VariantShares(
    missing_parameter=0.0,
    against_policy=0.0,
    missing_tool=0.0,
    irrelevant_tool=0.0,
    unclear_tool=0.0,
    no_tool=0.0,
)


def settings(*overrides: str) -> TaskConfig:
    return validate_as(TaskConfig, with_overrides({}, overrides), where="here")


def row(config: TaskConfig, plan: TaskPlan) -> Row:
    plain = config.model_copy(update={"forms": ALL_PLAIN})  # whose words nobody has to read
    work = make_task(plan, BriefWriter().llm, config=plain, sources=sources(), generator=GENERATOR)
    found = asyncio.run(work)
    assert isinstance(found, dict)
    return found


def difference(name: str, *overrides: str) -> tuple[int, Row]:
    """How much more of a column the first task has with other settings, and its row of before."""
    plan = plans(1)[0]
    before = row(TaskConfig(), plan)
    return row(settings(*overrides), plan)[name] - before[name], before


def test_the_defaults_give_the_limits_that_tasks_always_had() -> None:
    assert TaskConfig().max_turns.of(steps=3, goals=2) == 2 * 3 + 4 * 2 + 8
    assert TaskConfig().token_budget.of(steps=3, shown_chars=1234) == 3000 + 1234 + 500 * 3
    assert (TaskConfig().max_turns.on_code, TaskConfig().token_budget.on_code) == (48, 60_000)


def test_max_turns_follows_its_settings() -> None:
    assert difference("max_turns", "max_turns.base=20")[0] == 12
    more, before = difference("max_turns", "max_turns.per_step=5")
    assert more == 3 * before["num_steps"]
    more, before = difference("max_turns", "max_turns.per_goal=5")
    assert more == len(before["user_brief"]["wishes"])


def test_the_token_budget_follows_its_settings() -> None:
    assert difference("token_budget", "token_budget.base=3100")[0] == 100
    more, before = difference("token_budget", "token_budget.per_step=510")
    assert more == 10 * before["num_steps"]
    shown = before["token_budget"] - 3000 - 500 * before["num_steps"]
    assert shown > 0
    assert difference("token_budget", "token_budget.per_shown_char=3")[0] == 2 * shown


class OneCodeTask(CodeTasks):
    """A task on code that was proved elsewhere."""

    def environment_for(self, item_id: str) -> CodeEnvironment:
        return CodeEnvironment(project())

    async def make(self, item_id: str) -> CodeTask:
        case = cases(4)[0]
        proof = DomainTasks(case.domain, case.tools, variants=NORMAL).make(
            "on code", shares=SHARES, disclosure="at_once"
        )
        return CodeTask("simple", proof[1], proof[2], [], (), "bug")


def test_tasks_on_code_have_limits_of_their_own() -> None:
    words = FixedWords({"title": "Wrong price", "body": "Ten pieces should be cheaper."})
    plan = TaskPlan("item", agent(domain_id=CODE_DOMAIN, tool_ids=[]), persona())
    work = make_task(
        plan,
        words.llm,
        config=settings("max_turns.on_code=30", "token_budget.on_code=9000", "pass_threshold=0.9"),
        sources=TaskSources(tools={}, domains={}, servers={}, code=OneCodeTask({})),
        generator=GENERATOR,
    )
    found = cast(Any, asyncio.run(work))
    assert (found["max_turns"], found["token_budget"]) == (30, 9000)
    assert found["rubric"]["pass_threshold"] == 0.9


def test_the_pass_threshold_decides() -> None:
    usual = ((plan, rubric_of(row(TaskConfig(), plan)).criteria) for plan in plans(30))
    plan, optional = next(
        (plan, c) for plan, criteria in usual for c in criteria if not c.mandatory
    )
    strict, mild = (rubric_of(row(settings(f"pass_threshold={at}"), plan)) for at in (1.0, 0.5))
    assert strict.criteria == mild.criteria
    scores = {c.id: 1.0 for c in strict.criteria} | {optional.id: 0.0}
    assert decide(mild, scores).accepted
    assert not decide(strict, scores).accepted


def test_the_share_of_held_out_tasks() -> None:
    held = [own_split("task", digest(i), heldout_share=0.4) != "train" for i in range(5000)]
    assert 0.37 < sum(held) / len(held) < 0.43
    rows = [row(settings(f"heldout_share={share}"), plans(1)[0]) for share in (0.0, 1.0)]
    assert [one["split"] for one in rows] == ["train", "heldout_task"]
    usual = made(plans(1)[0])
    assert isinstance(usual, dict)
    tools = sorted(step["tool"] for step in usual["reference_plan"])
    assert usual["split"] == own_split("task", digest("combination", tools))


def test_personas_of_a_block() -> None:
    few, many = settings("personas_per_block=2"), settings("personas_per_block=64")
    assert [num_personas(BLOCK + 1, config) for config in (few, TaskConfig(), many)] == [4, 32, 128]
    drawn = {persona_number(i, 7, few) for i in range(2 * BLOCK)}
    assert drawn == {0, 1, 2, 3}
    assert all(persona_number(i, 7, many) < num_personas(i + 1, many) for i in range(3 * BLOCK))


def drawn(shares: VariantShares, **has: bool) -> Counter[Variant]:
    possible = dict.fromkeys(("has_rules", "lacks_tools", "has_others", "has_alternatives"), True)
    rng = Random(5)
    return Counter(variant_of(rng, shares=shares, **(possible | has)) for _ in range(2000))


@pytest.mark.parametrize("variant", VariantShares.model_fields)
def test_shares_of_variants(variant: Variant) -> None:
    counts = drawn(NORMAL.model_copy(update={variant: 0.4}))
    assert 0.36 < counts[variant] / 2000 < 0.44
    assert counts["normal"] + counts[variant] == 2000


def test_what_an_agent_cannot_have_goes_to_the_normal_tasks() -> None:
    counts = drawn(VariantShares(against_policy=0.3, missing_tool=0.3), has_rules=False)
    assert counts["against_policy"] == 0
    assert drawn(NORMAL) == {"normal": 2000}


def test_tasks_of_a_domain_are_of_the_variant_that_is_asked_for() -> None:
    domain = domains()[0]
    only = NORMAL.model_copy(update={"no_tool": 1.0})
    tasks = DomainTasks(domain, domain.programs, variants=only)
    made = [tasks.make(str(i), shares=SHARES, disclosure="at_once")[1] for i in range(3)]
    assert {draft.variant for draft in made} == {"no_tool"}


def test_the_stage_hands_its_variants_on() -> None:
    variants = NORMAL.model_copy(update={"no_tool": 1.0})
    config = TaskConfig(variants=variants)
    assert {row(config, plan)["variant"] for plan in plans(3)} == {"no_tool"}


def test_shares_of_variants_on_servers() -> None:
    config = builtin_servers()["git"]
    calls = [call for goal in config.goals for call in goal.calls]
    tools = {
        call.tool: {"description": "Do it.", "input_schema": {"required": list(call.arguments)}}
        for call in calls
    }
    others = [domain for domain in domains() if domain.name == "clinic_desk"]

    def variants(shares: ServerVariantShares) -> set[str]:
        made = [
            draft_for_server(
                config,
                tools,
                digest("server", i),
                count=2,
                disclosure="mixed",
                variants=shares,
                others=lambda: others,
            )
            for i in range(20)
        ]
        return {one.draft.variant for one in made}

    none = ServerVariantShares(missing_parameter=0.0, irrelevant_tool=0.0)
    assert variants(none) == {"normal"}
    assert "irrelevant_tool" in variants(none.model_copy(update={"irrelevant_tool": 1.0}))
    assert "missing_parameter" in variants(none.model_copy(update={"missing_parameter": 1.0}))


def drafts(mix: GoalMix) -> list[Draft]:
    chosen = [domain for domain in domains() if domain.name in ("parcel_depot", "ticket_board")]
    return [
        DomainTasks(domain, domain.programs, variants=NORMAL, mix=mix).make(
            digest("mix", domain.name, i), shares=Complexity(0.0, 0.0, 1.0), disclosure="at_once"
        )[1]
        for domain in chosen
        for i in range(6)
    ]


def test_goals_follow_up_and_keep_an_order_as_often_as_is_asked_for() -> None:
    def following(made: list[Draft]) -> int:
        labels = (label for d in made for g in d.goals for label in g.labels.values())
        return sum("made just before" in label for label in labels)

    def ordered(made: list[Draft]) -> int:
        return sum(any(goal.after for goal in draft.goals) for draft in made)

    never = drafts(GoalMix(in_order=0.0, follow_up=0.0))
    always = drafts(GoalMix(in_order=1.0, follow_up=1.0))
    assert following(always) > following(never)
    assert ordered(always) > ordered(never) == 0


@pytest.mark.parametrize("table", ["variants", "server_variants"])
def test_shares_of_variants_leave_room(table: str) -> None:
    values = [f"{table}.missing_parameter=0.6", f"{table}.irrelevant_tool=0.6"]
    with pytest.raises(ConfigError, match=f"{table}: shares of all tasks may add up to 1 at most"):
        settings(*values)
