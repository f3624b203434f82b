"""Environments of episodes in real Pods do what they do here, and no Pod waits in vain."""

import asyncio
import time

import pytest

from sandboxes.code.problems import judge
from sandboxes.code.suite import list_tests, run_suite
from sandboxes.lending.leases import HERE, available, place_in_use
from sandboxes.lending.places import SandboxesConfig
from sandboxes.mcp.warm import WarmServers
from tests.kubernetes import environments
from tests.kubernetes.environments import Case, Plays, Record, reached
from tests.kubernetes.leaks import on_the_real_node, pods_made, running
from tests.kubernetes.players.real.host import unable
from tests.kubernetes.staging import Stage

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(unable() is not None, reason=f"no real Pods here: {unable()}"),
    pytest.mark.skipif(available() is not None, reason="the same plays here need sandboxes, too"),
]


def on(stage: Stage, warm: int = 0) -> SandboxesConfig:
    settings = stage.settings(stream_cpus=1, warm=warm)
    return SandboxesConfig(backend="kubernetes", kubernetes=settings)


def test_environments_that_are_held_at_once_do_what_they_do_here(stage: Stage) -> None:
    """A problem, a repository with the same bug twice, and an MCP server, in four Pods."""
    held = list[int]()

    async def played(sandboxes: SandboxesConfig, cases: list[Case]) -> list[Record]:
        async with sandboxes.in_use(), WarmServers(len(cases)) as servers:

            async def count() -> None:
                if place_in_use() is not HERE:
                    held.append(len(await asyncio.to_thread(running, stage)))

            return await Plays(servers, graded=2).run(cases, count)

    bug = asyncio.run(environments.planted("coinpurse"))
    problem, *_ = environments.problems()
    repository = environments.repository("coinpurse", bug)
    cases = [problem, repository, repository, environments.server("git")]
    here = asyncio.run(played(SandboxesConfig(), cases))
    there = asyncio.run(played(on(stage), cases))
    assert held == [4]
    assert there == here
    assert all(map(reached, there))
    assert [record.in_the_end is not None for record in there] == [True, True, False, False]
    while running(stage) or on_the_real_node(stage):
        time.sleep(0.2)


def test_a_graded_candidate_has_no_more_pods_than_it_uses(stage: Stage) -> None:
    """A spare one would be of no use to anybody else: it shows this candidate's files."""
    [problem] = [each.graded for each in environments.problems()[:1]]
    assert problem is not None
    asked = problem.environment.problem
    assert asked is not None
    project = environments.code_environments(["coinpurse"])["coinpurse"].project
    name = asyncio.run(list_tests(project))[0].name

    async def graded() -> list[int]:
        made = list[int]()
        async with on(stage, warm=2).in_use():
            before = await asyncio.to_thread(pods_made, stage)
            right = {asked.file: asked.reference}
            assert (await judge(asked, right, problem.tests[:2])).passed == {*problem.tests[:2]}
            made.append(await asyncio.to_thread(pods_made, stage) - before)
            assert (await run_suite(project, project.files, [name])).passed == {name}
            made.append(await asyncio.to_thread(pods_made, stage) - before)
        return made

    assert asyncio.run(graded()) == [2, 3]
