"""Tasks on real MCP servers, each plan executed in a sandbox."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from records.digest import digest
from sandboxes.lending.leases import available
from sandboxes.mcp.servers import ServerConfig, builtin_servers
from sandboxes.mcp.warm import WarmServers
from synth.rubrics.built_in import BUILT_IN, EpisodeCall, episode_of, state_changes
from synth.tasks.proof.proving import UnprovedError, reference_messages
from synth.tasks.servers.drafting import ServerDraft, draft_for_server
from synth.tasks.servers.proving import prove_on_server
from tool_specs.domains.domain import load_domains

pytestmark = pytest.mark.skipif(available() is not None, reason=f"no sandbox: {available()}")


def rows_of(tools: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {
        t["name"]: {"description": t["description"], "input_schema": t["inputSchema"]}
        for t in tools
    }


def draft_of(config: ServerConfig, tools: Any, i: int, attempt: int = 0) -> ServerDraft:
    return draft_for_server(
        config, tools, digest(config.name, i), count=1 + i % 4, disclosure="mixed", attempt=attempt
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["git", "time"])
def test_plans_are_proved_and_planted_failures_show(name: str) -> None:
    config = builtin_servers()[name]

    async def run() -> Counter[str]:
        seen: Counter[str] = Counter()
        async with WarmServers() as warm:
            async with warm.open(config) as server:
                tools = rows_of(await server.list_tools())
            for i in range(12):
                made = draft_of(config, tools, i)
                async with warm.open(config, made.draft.initial_state) as server:
                    try:
                        draft, proof = await prove_on_server(made, server)
                    except UnprovedError as error:
                        seen[error.reason] += 1
                        continue
                seen["proved"] += 1
                seen["writes"] += any(goal.writes for goal in draft.goals)
                idle = BUILT_IN.check_all(proof.rubric, episode_of(reference_messages(draft), []))
                writes = any(goal.writes for goal in draft.goals)
                assert idle["state"].passed == (not writes)
                silent = [{"role": "assistant", "content": "Done."}]
                untold = BUILT_IN.check_all(proof.rubric, episode_of(silent, []))
                told = [i for i in untold if i.startswith("told")]
                assert not any(untold[i].passed for i in told)
        return seen

    seen = asyncio.run(run())
    assert seen["proved"] >= 9, seen
    assert seen["writes"] >= (3 if name == "git" else 0)


@pytest.mark.slow
def test_a_wish_of_another_world_is_refused_on_a_real_server() -> None:
    config = builtin_servers()["time"]

    async def run() -> list[Any]:
        async with WarmServers() as warm:
            async with warm.open(config) as server:
                tools = rows_of(await server.list_tools())
            for i in range(200):
                made = draft_for_server(
                    config,
                    tools,
                    digest("irrelevant", i),
                    count=2,
                    disclosure="mixed",
                    others=load_domains,
                )
                if made.draft.variant == "irrelevant_tool":
                    async with warm.open(config, made.draft.initial_state) as server:
                        return [*await prove_on_server(made, server), tools]
        raise AssertionError("no such task among 200")

    draft, proof, tools = asyncio.run(run())
    assert not draft.solvable
    assert draft.goals[-1].tool not in tools
    assert draft.proved["out_of_reach"]["why"] == "other_world"
    assert any(criterion.id == "says_so" for criterion in proof.rubric.criteria)


@pytest.mark.slow
def test_the_same_plan_on_a_fresh_and_on_a_warm_server_is_the_same() -> None:
    config = builtin_servers()["git"]

    async def played(warm: WarmServers, made: ServerDraft) -> list[Any]:
        async with warm.open(config, made.draft.initial_state) as server:
            before = await server.state()
            texts = [(await server.call(s.tool, s.arguments)).text for s in made.draft.plan]
            return [before, texts, state_changes(before, await server.state())]

    async def run() -> None:
        async with WarmServers(live=1) as warm, WarmServers(live=1) as other:
            async with warm.open(config) as server:
                tools = rows_of(await server.list_tools())
            writing = [
                d for i in range(20) if (d := draft_of(config, tools, i)).draft.goals[0].writes
            ]
            first, second = writing[:2]
            used = [await played(warm, first), await played(warm, second)]
            fresh = [await played(other, second), await played(other, first)]
            assert used == fresh[::-1]

    asyncio.run(run())


def test_wishes_that_conflict_do_not_stand_together() -> None:
    config = builtin_servers()["git"]
    row = {"description": "Do a thing.", "input_schema": {}}
    names = {call.tool: row for goal in config.goals for call in goal.calls}
    by_id = {goal.id: goal for goal in config.goals}
    for i in range(200):
        made = draft_of(config, names, i)
        ids = [wish.id for wish in made.user_goals]
        for at, wish in enumerate(made.user_goals):
            assert not set(ids) & set(wish.conflicts)
            assert set(wish.requires) <= set(ids[:at])
            assert wish == by_id[wish.id]
        calls = [call.tool for wish in made.user_goals for call in wish.calls]
        assert [step.tool for step in made.draft.plan] == calls
        assert len(made.draft.goals) == len(made.user_goals)
        assert draft_of(config, names, i) == made


def test_an_agent_without_fitting_tools_gets_a_reason(tmp_path: Path) -> None:
    with pytest.raises(UnprovedError, match="no_goal_found"):
        draft_of(builtin_servers()["git"], {}, 0)
    assert EpisodeCall(tool="x", arguments={}).diff == ()
