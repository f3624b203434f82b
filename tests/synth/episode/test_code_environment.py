"""Tasks on code from planting to reward: proved, played through the tools, graded from rows."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from records.digest import digest
from records.errors import ConfigError, TransientError
from records.store.journal import ShardJournal
from records.tables.schemas import Row
from records.tables.tables import TABLES
from sandboxes.code.workspace import Workspace, open_workspace
from sandboxes.core.body import ProgramEndedError
from sandboxes.lending.leases import available
from synth.episode.environment import EnvironmentStep, EpisodeConfig, EpisodeEnvironment
from synth.episode.tools.code_environments import (
    CODE_DOMAIN,
    CodeEnvironment,
    code_environments,
    domain_row,
    tool_rows,
)
from synth.episode.tools.executors import Catalogue
from synth.episode.tools.fault_injection import FaultInjectionConfig
from synth.tasks.code_issues import quoted
from synth.tasks.code_tasks import CodeTask, CodeTasks
from tests.sandboxes.code.code_cases import RIGHT, project

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(available() is not None, reason=f"no sandbox: {available()}"),
]

QUIET = EpisodeConfig(fault_injection=FaultInjectionConfig(weights={"success": 1}))
WORLD = CodeEnvironment(project())


def catalogue() -> Catalogue:
    tools = {row["tool_id"]: row for row in tool_rows()}
    agent = {"agent_id": "a", "tool_ids": list(tools), "system_prompt": "You mend code."}
    return Catalogue({"a": agent}, {"p": {}}, tools, {}, {}, code={"shop": WORLD})


def task_row(made: CodeTask) -> Row:
    return {
        "task_id": "t",
        "agent_id": "a",
        "persona_id": "p",
        "domain_id": CODE_DOMAIN,
        "server": None,
        "user_brief": {"opening": "It is wrong.", "wishes": ["It is wrong."], "facts": []},
        "rubric": made.proof.rubric.model_dump(mode="json"),
        "initial_state": made.draft.initial_state,
        "solvable": True,
        "token_budget": 100_000,
        "max_turns": 20,
    }


@pytest.fixture(scope="module")
def made() -> CodeTask:
    return asyncio.run(CodeTasks({"shop": WORLD}).make(digest("one")))


def call(index: int, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    function = {"name": tool, "arguments": json.dumps(arguments)}
    made = {"id": f"call_{index}", "type": "function", "function": function}
    return {"role": "assistant", "content": "", "tool_calls": [made]}


def actions(made: CodeTask) -> list[dict[str, Any]]:
    calls = [call(i, s.tool, s.arguments) for i, s in enumerate(made.draft.plan)]
    return [*calls, {"role": "assistant", "content": "The price is right again."}]


async def play(env: EpisodeEnvironment, row: Row, moves: list[dict[str, Any]]) -> EnvironmentStep:
    """The last step."""
    await env.reset(row, 0)
    try:
        return [await env.step(move) for move in moves][-1]
    finally:
        await env.close()


def test_rows_have_their_columns() -> None:
    made = {"run_id", "schema_version"}
    assert set(domain_row()) == set(TABLES["domains"].schema.names) - made
    for row in tool_rows():
        assert set(row) == set(TABLES["tools"].schema.names) - made


def test_the_reference_is_rewarded_and_doing_nothing_is_not(made: CodeTask) -> None:
    env = EpisodeEnvironment(catalogue(), QUIET)
    step = asyncio.run(play(env, task_row(made), actions(made)))
    assert (step.reward, step.info["termination_reason"]) == (1.0, "agent_done")
    assert {r.executed_by for r in env.state.caller.records} == {"code"}
    assert [c["id"] for r in env.state.caller.records for c in r.state_diff] == ["shop/price.py"]
    idle = asyncio.run(play(env, task_row(made), actions(made)[-1:]))
    assert idle.reward == 0.0
    assert not idle.info["verdicts"]["tests"].passed


def test_tests_that_the_agent_edits_decide_nothing(made: CodeTask) -> None:
    blank = {"command": "echo > tests/test_price.py; rm -r tests; ls"}
    moves = [call(0, "run_shell", blank), *actions(made)[-1:]]
    env = EpisodeEnvironment(catalogue(), QUIET)
    step = asyncio.run(play(env, task_row(made), moves))
    assert step.reward == 0.0
    assert "tests/test_price.py" in [c["id"] for c in env.state.caller.records[0].state_diff]


@pytest.mark.parametrize("solved", [True, False])
def test_an_episode_that_ends_its_sandbox_is_scored_for_what_it_did(
    made: CodeTask, solved: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The memory limit takes the agent's own process: injected, since the kernel prefers others."""
    mended = [s for s in made.draft.plan if s.tool == "edit_file"] if solved else []
    moves = [call(n, step.tool, step.arguments) for n, step in enumerate(mended)]
    moves += [call(len(moves) + n, "run_shell", {"command": "true"}) for n in range(2)]
    ends = ProgramEndedError("the program ended its sandbox: it took all memory")

    async def ended(self: Workspace, command: str) -> None:
        raise ends

    monkeypatch.setattr(Workspace, "_shell", ended)
    env = EpisodeEnvironment(catalogue(), QUIET)
    step = asyncio.run(play(env, task_row(made), [*moves, *actions(made)[-1:]]))
    assert (step.reward, step.info["termination_reason"]) == (float(solved), "agent_done")
    first, second = env.state.caller.records[-2:]
    assert (first.is_error, first.error_code) == (True, "sandbox_ended")
    assert first.observation == second.observation
    assert "it took all memory" in first.observation
    assert first.state_hash_before == second.state_hash_after == env.state.hash_final


def test_an_episode_repeats_to_the_letter(made: CodeTask) -> None:
    look = "ls -la . shop; date; python -c 'import time; print(time.time(), hash(\"a\"))'; env"
    moves = [call(0, "run_shell", {"command": look}), *actions(made)]
    seen = []
    for _ in range(2):
        env = EpisodeEnvironment(catalogue(), QUIET)
        asyncio.run(play(env, task_row(made), moves))
        seen.append([r._asdict() for r in env.state.caller.records])
    assert seen[0] == seen[1]


def test_a_resumed_episode_has_the_journalled_results(made: CodeTask, tmp_path: Any) -> None:
    moves = actions(made)

    def env(journal: ShardJournal) -> EpisodeEnvironment:
        return EpisodeEnvironment(catalogue(), QUIET, journal=journal, episode_id="e")

    with ShardJournal(tmp_path / "j.sqlite") as journal:
        first = env(journal)
        asyncio.run(play(first, task_row(made), moves[:3]))  # died in the middle
        second = env(journal)
        step = asyncio.run(play(second, task_row(made), moves))
    assert step.reward == 1.0
    assert second.state.drifts == []
    assert second.state.caller.records[:3] == first.state.caller.records


def test_a_grading_sandbox_that_fails_is_not_the_agents_failure(
    made: CodeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lost(*_: object) -> None:
        raise TransientError("no sandbox today")

    monkeypatch.setattr("synth.episode.tools.code_environments.run_suite", lost)
    env = EpisodeEnvironment(catalogue(), QUIET)
    step = asyncio.run(play(env, task_row(made), actions(made)))
    assert step.info["termination_reason"] == "infra_error"
    assert (step.reward, step.info["verdicts"]) == (0.0, {})


def test_a_repository_that_was_edited_is_refused(made: CodeTask) -> None:
    row = task_row(made)
    row["initial_state"] = row["initial_state"] | {"definition": "another"}
    with pytest.raises(ConfigError, match="edited since"):
        asyncio.run(play(EpisodeEnvironment(catalogue(), QUIET), row, actions(made)))


def test_edits_that_cannot_be_made_say_why() -> None:
    async def run() -> list[str | None]:
        async with open_workspace(project(), project().files) as workspace:
            edits = [
                ("shop/price.py", "nowhere", "x"),
                ("shop/price.py", "count", "x"),
                ("none.py", "a", "b"),
                ("../out.py", "", "x"),
                ("shop/price.py", "", "x"),
            ]
            codes = [
                (
                    await workspace.call("edit_file", {"path": p, "old_text": old, "new_text": new})
                ).error_code
                for p, old, new in edits
            ]
            assert workspace.files["shop/price.py"] == RIGHT
            return codes

    expected = ["no_match", "ambiguous", "not_found", "not_written", "exists"]
    assert asyncio.run(run()) == expected


def test_an_issue_must_not_quote_the_program() -> None:
    line = "    return count * 5 if count < 10 else 0"
    assert quoted("It says `return count*5 if count<10 else 0`.", [line, "x = 1"])
    assert not quoted("Ten pieces cost too much, x = 1.", [line, "x = 1"])


def test_worlds_are_named_or_refused() -> None:
    assert code_environments(["textgrid", "basics"]).keys() > {"textgrid", "runs_of_letters"}
    assert code_environments([]) == {}
    with pytest.raises(ConfigError, match="textgird"):
        code_environments(["textgird"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: a\nfiles: {x.py: ''}\n", r"code\.yaml: .*has no test in 'tests'"),
        ("problems: [{name: A}]\n", r"code\.yaml: problems\[A\]\.name: String should match"),
        ("files: " + "[" * 100_000, r"code\.yaml: line 1, column 3[78]: nested deeper than 30"),
        ("- 1\n", r"code\.yaml: the file: Input should be a valid dictionary"),
    ],
)
def test_a_wrong_definition_is_refused_with_file_and_field(
    tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "code.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        code_environments([str(path)])
