"""Agents and personas: planned by seed, the same at any count, held-out tools kept apart."""

import asyncio
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from records.digest import digest
from records.errors import ConfigError, ItemError
from records.tables.splits import split_of
from records.tables.tables import TABLES
from sandboxes.mcp.servers import ServerConfig, builtin_servers
from synth.episode.tools import code_environments as coding
from synth.llm.settings.config import ModelConfig, RoleConfig
from synth.pipeline.config_files import validate
from synth.tasks.agents import agents, personas
from synth.tasks.agents.agents import AgentConfig, AgentPlan, AgentSource, plan_agents, sources_of
from synth.tasks.agents.persona_config import PersonaConfig
from synth.tasks.agents.personas import plan_personas
from tests.synth.authors import FIXED_GENERATOR, GENERATOR, FixedWords, with_offline
from tests.synth.golden import assert_golden
from tests.synth.task_cases import domains
from tool_specs.domains.catalogue import domain_row, tool_rows
from tool_specs.toolsets.dependencies import Graph

GOLDEN = Path(__file__).parent / "golden"
COLUMNS = {"run_id", "schema_version"}


def server_rows(name: str, count: int) -> list[dict[str, Any]]:
    return [
        {
            "tool_id": digest(name, i),
            "name": f"{name}_tool_{i}",
            "domain_id": None,
            "server": name,
            "category": "Development Tools",
            "description": f"Do thing {i}.",
            "input_schema": {},
            "output_schema": None,
            "semantics_json": None,
            "drop_reason": None,
            "split": "heldout_tool" if i == 0 else "train",
        }
        for i in range(count)
    ]


@cache
def catalogue() -> tuple[AgentSource, ...]:
    rows = [row for domain in domains() for row in tool_rows(domain)]
    rows += server_rows("git", 8) + server_rows("time", 2) + server_rows("gone", 3)
    servers = {name: builtin_servers()[name] for name in ("git", "time")}
    return tuple(sources_of(map(domain_row, domains()), rows, servers))


def plans(count: int, seed: int = 1, **config: Any) -> list[AgentPlan]:
    return plan_agents(
        AgentConfig(**config), catalogue(), seed=seed, count=count, generator=GENERATOR
    )


def test_a_plan_only_grows_with_the_count() -> None:
    assert plans(40)[:15] == plans(15)
    assert len({plan.item_id for plan in plans(200)}) == 200


def test_identity_follows_seed_settings_and_model_but_not_price() -> None:
    def first(**changes: Any) -> str:
        role = RoleConfig(**changes)
        return plan_agents(AgentConfig(), catalogue(), seed=1, count=1, generator=role)[0].item_id

    assert first() == first(usd_per_million_prompt=3.0, base_url="http://host/v1")
    others = {first(models=(ModelConfig(name="x"),)), plans(1, seed=2)[0].item_id}
    others |= {plans(1, max_distractors=0)[0].item_id, first()}
    assert len(others) == 4


def test_every_source_has_agents_and_servers_their_share() -> None:
    counts = Counter(plan.source.key for plan in plans(120))
    assert set(counts) == {source.key for source in catalogue()}
    on_servers = sum(n for key, n in counts.items() if key.startswith("server:"))
    assert on_servers == 30
    assert "server:gone" not in counts
    in_domains = [n for key, n in counts.items() if not key.startswith("server:")]
    assert max(in_domains) - min(in_domains) <= 1


def with_code() -> list[AgentSource]:
    rows = [row for domain in domains() for row in tool_rows(domain)]
    code = coding.code_environments(["coinpurse"])
    rows += server_rows("git", 8) + coding.tool_rows()
    about = [*map(domain_row, domains()), coding.domain_row()]
    return sources_of(about, rows, {"git": builtin_servers()["git"]}, code)


@pytest.mark.parametrize(("share", "few", "many"), [(0.04, 1, 8), (0.5, 1, 100), (0.0, 0, 0)])
def test_a_run_of_few_agents_has_one_on_code_and_the_share_holds(
    share: float, few: int, many: int
) -> None:
    config = AgentConfig(code_share=share)
    planned = plan_agents(config, with_code(), seed=1, count=200, generator=GENERATOR)
    on_code = [plan.source.environments is not None for plan in planned]
    assert sum(on_code[:3]) == few  # a dry run has three agents
    assert sum(on_code) == many


def test_held_out_tools_stay_with_held_out_agents() -> None:
    for plan in plans(300):
        splits = {tool["split"] for tool in plan.tools}
        if "heldout_tool" in splits:
            assert split_of(plan.source.split, splits) != "train"
    kinds = Counter(split_of(p.source.split, [t["split"] for t in p.tools]) for p in plans(300))
    assert kinds["train"] > 0.7 * 300
    assert kinds["heldout_tool"] >= 10


def test_toolsets_vary_and_distractors_are_few_and_foreign() -> None:
    sets, distracted, lacking = set(), 0, 0
    for plan in plans(300):
        names = [tool["name"] for tool in plan.tools]
        assert len(set(names)) == len(names)
        own = [t for t in plan.tools if t in plan.source.tools]
        foreign = [t for t in plan.tools if t not in plan.source.tools]
        assert own
        assert len(foreign) <= 3
        assert all(t["split"] == "train" and t["domain_id"] for t in foreign)
        assert len({t["domain_id"] for t in foreign}) <= 1
        distracted += bool(foreign)
        lacking += len(own) < sum(t["split"] != "heldout_tool" for t in plan.source.tools)
        sets.add(frozenset(names))
    assert len(sets) > 200
    assert distracted > 150
    assert lacking > 40


def test_a_large_source_gives_each_agent_a_set_that_hangs_together() -> None:
    size = 5
    toolsets = set()
    domains_only = [source for source in catalogue() if source.domain_id]
    for plan in plan_agents(
        AgentConfig(max_tools=size, fewer_tools_share=0.0, max_distractors=0, heldout_share=1.0),
        domains_only,
        seed=1,
        count=60,
        generator=GENERATOR,
    ):
        assert len(plan.tools) == size
        assert set(map(str, plan.tools)) <= set(map(str, plan.source.tools))
        entities = {"domain_id": plan.source.domain_id, "entities": plan.source.entities}
        graph = Graph(plan.tools, [entities])
        whole = Graph(plan.source.tools, [entities])
        if max(whole.component_size.values()) >= size:
            assert set(graph.component_size.values()) == {size}
        toolsets.add(frozenset(t["tool_id"] for t in plan.tools))
    assert len(toolsets) > 40


def test_no_catalogue_no_agents() -> None:
    assert plan_agents(AgentConfig(), [], seed=1, count=5, generator=GENERATOR) == []


def test_rows_have_the_columns_of_the_table(tmp_path: Path) -> None:
    some = [p for p in plans(40) if p.source.server][:1] + plans(3)

    async def make(llm: Any) -> list[Any]:
        return [await agents.make_agent(plan, llm, generator=GENERATOR) for plan in some]

    for plan, row in zip(some, with_offline(tmp_path, make), strict=True):
        assert set(row) == set(TABLES["agents"].schema.names) - COLUMNS
        assert row["agent_id"] == plan.item_id
        assert row["model"] == "offline-model"
        # the episode gives them to the agent, once, whoever wrote the prompt
        for text in (plan.source.description, *plan.source.policy):
            assert text
            assert text not in row["system_prompt"]


def test_personas_vary_and_rows_have_the_columns(tmp_path: Path) -> None:
    planned = plan_personas(seed=1, count=60, generator=GENERATOR)
    assert planned[:10] == plan_personas(seed=1, count=10, generator=GENERATOR)
    assert len({(p.style, p.preferences, p.patience, p.disclosure) for p in planned}) > 50

    async def make(llm: Any) -> list[Any]:
        return [await personas.make_persona(p, llm, generator=GENERATOR) for p in planned[:3]]

    for row in with_offline(tmp_path, make):
        assert set(row) == set(TABLES["personas"].schema.names) - COLUMNS


def test_personas_are_drawn_from_the_configured_lists() -> None:
    own = PersonaConfig(
        styles=("in rhymes",), preferences=("tea",), disclosure=("mixed",), patience=(2, 2)
    )
    planned = plan_personas(own, seed=1, count=3, generator=GENERATOR)
    drawn = {(p.style, p.preferences, p.disclosure, p.patience) for p in planned}
    assert drawn == {("in rhymes", ("tea",), "mixed", 2)}
    usual = plan_personas(seed=1, count=3, generator=GENERATOR)
    assert {p.item_id for p in usual}.isdisjoint(p.item_id for p in planned)
    assert usual == plan_personas(PersonaConfig(), seed=1, count=3, generator=GENERATOR)


@pytest.mark.parametrize(
    ("setting", "value", "words"),
    [
        ("styles", [], "at least 1 item"),
        ("styles", ["  "], "at least 1 character"),
        ("preferences", ["one\ntwo"], "pattern"),
        ("disclosure", ["never"], "'at_once', 'mixed' or 'when_asked'"),
        ("patience", [5, 3], "from 1 to 20, such as"),
        ("patience", [0, 3], "from 1 to 20, such as"),
        ("patince", [1, 3], "did you mean 'patience'"),
    ],
)
def test_wrong_persona_settings_are_refused_by_name(setting: str, value: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=rf"personas\.{setting}.* = .*{words}"):
        validate({"personas": {setting: value}}, where="test")


def test_a_generator_that_fails_fails_the_item() -> None:
    class Broken(FixedWords):
        async def structured(self, *_: Any, **__: Any) -> Any:
            raise ItemError("invalid_output", "no JSON")

    with pytest.raises(ItemError, match="invalid_output"):
        asyncio.run(agents.make_agent(plans(1)[0], Broken().llm, generator=GENERATOR))


def tiny_source() -> AgentSource:
    tools = tuple(server_rows("shop", 7))
    return AgentSource(
        domain_id=None,
        server="shop",
        title="Shop",
        description="A shop in /shop.",
        policy=("Be kind.",),
        split="train",
        tools=tools,
    )


def test_golden_agents() -> None:
    words = FixedWords({"name": " Ada ", "system_prompt": "You are Ada. " * 5})
    planned = plan_agents(
        AgentConfig(), [tiny_source()], seed=1, count=4, generator=FIXED_GENERATOR
    )
    rows = [asyncio.run(agents.make_agent(p, words.llm, generator=GENERATOR)) for p in planned]
    asked = [ask["messages"] for ask in words.asked]
    made = {"rows": rows, "asked": asked}
    assert_golden(GOLDEN / "agents.yaml", agents.STAGE_VERSION, made)


def test_golden_personas() -> None:
    words = FixedWords(
        {
            "name": "Bo Li",
            "background": "Bakes bread.",
            "sample": " rain again ",
            "preferences": ["tea "],
        }
    )
    planned = plan_personas(seed=1, count=4, generator=FIXED_GENERATOR)
    rows = [asyncio.run(personas.make_persona(p, words.llm, generator=GENERATOR)) for p in planned]
    asked = [ask["messages"] for ask in words.asked]
    made = {"rows": rows, "asked": asked}
    assert_golden(GOLDEN / "personas.yaml", personas.STAGE_VERSION, made)


def test_servers_keep_their_own_split() -> None:
    config = ServerConfig(name="shop", command=("shop",), split="heldout_domain")
    (source,) = sources_of([], server_rows("shop", 2), {"shop": config})
    assert source.split == "heldout_domain"


def test_agents_of_a_server_can_grant_goals_that_were_found_on_it() -> None:
    """Every goal takes the tool that lists; what an agent lacks is never that one, and of many
    tools it has those of goals."""
    config = ServerConfig(name="shop", command=("shop",))
    for count, most in ((10, 16), (40, 8)):
        rows = server_rows("shop", count)
        names = [row["name"] for row in rows]
        goals = tuple(frozenset({names[1], name}) for name in names[2:8])
        sources = sources_of([], rows, {"shop": config}, goals={"shop": goals})
        planned = plan_agents(
            AgentConfig(max_tools=most, fewer_tools_share=1.0),
            sources,
            seed=3,
            count=60,
            generator=FIXED_GENERATOR,
        )
        sizes = set()
        for plan in planned:
            own = {tool["name"] for tool in plan.own_tools}
            sizes.add(len(own))
            assert 2 * sum(goal <= own for goal in goals) >= len(goals)
        assert min(sizes) < min(count, most), "some lack one"
        assert {plan.item_id for plan in planned}.isdisjoint(
            plan.item_id
            for plan in plan_agents(
                AgentConfig(max_tools=most, fewer_tools_share=1.0),
                sources_of([], rows, {"shop": config}),
                seed=3,
                count=60,
                generator=FIXED_GENERATOR,
            )
        )
