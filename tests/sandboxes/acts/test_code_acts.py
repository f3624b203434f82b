"""What an agent does in its sandbox is the agent's: each act through the real tools is answered by
an observation, the next ordinary call works or says why it cannot, and the pool accounts for all.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest

from records.digest import canonical_json
from sandboxes.code import workspace
from sandboxes.code.repository import MAX_TEXT
from sandboxes.code.workspace import TOOLS
from sandboxes.core.sandbox import Sandbox
from sandboxes.core.template import Limits, SandboxTemplate
from sandboxes.lending.capacity import PoolSettings
from sandboxes.lending.pool import Pool
from synth.episode.tools.code_executor import CodeExecutor
from synth.episode.tools.tool_result import ToolResult
from tests.sandboxes.acts.act import ENDED, UNREADABLE, WORKS, Act, act
from tests.sandboxes.acts.processes import KILLING, MULTIPLYING, NEVER_ENDING
from tests.sandboxes.acts.storage import DISKS, ENDING, MEMORY, REPOSITORY
from tests.sandboxes.acts.surroundings import ENVIRONMENT, OUTPUT, RUNS_OF_TESTS
from tests.sandboxes.code.code_cases import project

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("sandboxed")]

LIMITS = Limits(memory_mb=160, disk_mb=16, processes=40, timeout_s=6)
LIVE = 3
GROUPS = {
    "killing": KILLING,
    "multiplying": MULTIPLYING,
    "memory": MEMORY + ENDING,
    "disks": DISKS,
    "repository": REPOSITORY,
    "output": OUTPUT,
    "environment": ENVIRONMENT,
    "runs of tests": RUNS_OF_TESTS,
}
ORDINARY = {"command": "echo ordinary"}


class Became(NamedTuple):
    results: list[ToolResult]
    after: ToolResult


@asynccontextmanager
async def executors(count: int) -> AsyncIterator[list[CodeExecutor]]:
    """Their sandboxes come from one pool, whose accounts must add up to one lease each."""
    async with Pool(PoolSettings(live=LIVE)) as pool:

        @asynccontextmanager
        async def small(template: SandboxTemplate) -> AsyncIterator[Sandbox]:
            limits = LIMITS.model_copy(update={"output_bytes": template.limits.output_bytes})
            async with pool.lease(template.model_copy(update={"limits": limits})) as sandbox:
                yield sandbox

        made = project()
        yield [CodeExecutor(made, made.files, small) for _ in range(count)]
        await pool.settled()
        pool.accounts.check()
    accounts = pool.accounts
    assert accounts.alive == accounts.held == accounts.waiting == accounts.refused == 0
    assert accounts.asked == accounts.endings.total() == count


async def called(executor: CodeExecutor, calls: Sequence[tuple[str, Any]]) -> list[ToolResult]:
    kinds = {tool.name: tool.read_only for tool in TOOLS}
    return [await executor.call(t, arguments, read_only=kinds[t]) for t, arguments in calls]


def what_is_left(result: ToolResult) -> str:
    """What an ordinary call found."""
    if result.error_code == "sandbox_ended":
        return ENDED if ": the program ended its sandbox: " in result.text else "ended unsaid"
    if result.error_code == "unreadable":
        return UNREADABLE if "\nerror: " in result.text else "unreadable unsaid"
    works = (result.text, result.error_code) == ("exit code 0\nordinary", None)
    return WORKS if works else "something else"


def wrong_with(act: Act, became: Became | BaseException) -> str | None:
    if isinstance(became, BaseException):
        return f"{type(became).__name__}: {became}"
    for result in (*became.results, became.after):
        assert result.is_error == (result.error_code is not None)
        (result.text + canonical_json(result.diff)).encode()  # as rows are stored
    last = became.results[-1]
    if last.error_code not in act.codes:
        return f"{last.error_code}: {last.text[-300:]}"
    left = what_is_left(became.after)
    return None if left in act.after else f"afterwards {left}: {became.after.text[-300:]}"


def play(acts: Sequence[Act]) -> dict[str, str]:
    """Act -> what is wrong with what became of it."""

    async def one(act: Act, executor: CodeExecutor, turn: asyncio.Semaphore) -> Became:
        async with turn:
            try:
                results = await called(executor, act.calls)
                return Became(results, *await called(executor, [("run_shell", ORDINARY)]))
            finally:
                await executor.close()

    async def go() -> list[Became | BaseException]:
        turn = asyncio.Semaphore(LIVE)
        async with executors(len(acts)) as made:
            playing = (one(act, executor, turn) for act, executor in zip(acts, made, strict=True))
            return await asyncio.gather(*playing, return_exceptions=True)

    found = zip(acts, asyncio.run(go()), strict=True)
    return {act.name: wrong for act, became in found if (wrong := wrong_with(act, became))}


@pytest.mark.parametrize("group", GROUPS)
def test_an_act_is_answered_and_the_episode_goes_on(group: str) -> None:
    assert play(GROUPS[group]) == {}


def test_what_never_ends_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """In two rounds, so that only the acts have little time and not the calls after them."""

    async def go() -> list[tuple[Act, Became]]:
        found: list[tuple[Act, Became]] = []
        for start in range(0, len(NEVER_ENDING), LIVE):
            acts = NEVER_ENDING[start : start + LIVE]
            async with executors(len(acts)) as made:
                await asyncio.gather(*(called(e, [("list_files", {})]) for e in made))
                monkeypatch.setattr(workspace, "SHELL_S", 0.5)
                calls = (called(e, a.calls) for e, a in zip(made, acts, strict=True))
                results = await asyncio.gather(*calls)
                monkeypatch.undo()
                ordinary = (called(e, [("run_shell", ORDINARY)]) for e in made)
                after = [found for (found,) in await asyncio.gather(*ordinary)]
                await asyncio.gather(*(executor.close() for executor in made))
            found += zip(acts, map(Became, results, after), strict=True)
        return found

    found = {act.name: wrong_with(act, became) for act, became in asyncio.run(go())}
    assert found == dict.fromkeys(found)


ODD_TEXTS = {
    "empty": "",
    "zero bytes": "a\0b",
    "half a surrogate pair": "a\ud800b",
    "ten megabytes": "x" * 10_000_000,
    "an absolute path": "/etc/passwd",
    "a way up": "../../../../etc/passwd",
    "a home": "~/.profile",
    "escapes and line breaks": "a\x1b[2J\n\r\u2028b",
    "a long name": "n" * 5000,
}


def odd_arguments() -> list[Act]:
    """For each argument of each tool one act: all odd texts one after the other."""
    usual = {"path": "shop/price.py", "old_text": "count <", "new_text": "6"}
    found = []
    for tool in TOOLS:
        for name, schema in tool.properties.items():
            if schema["type"] == "string":
                given = {n: usual[n] for n in tool.required if n in usual}
                if name == "new_text":
                    given = {"path": "new.py", "old_text": ""}
                calls = [(tool.name, given | {name: text}) for text in ODD_TEXTS.values()]
                codes = {None, "not_found", "no_match", "exists", "not_written", "too_large"}
                found.append(act(f"{tool.name}.{name}", *calls, code=codes))
    return found


def test_odd_texts_in_every_argument_of_every_tool() -> None:
    acts = odd_arguments()
    assert len(acts) == 8
    assert play(acts) == {}


def test_new_files_never_hide_a_change_of_a_known_one() -> None:
    """Thousands of files that come first by name, and a change of one that comes last."""
    script = "for i in $(seq 3000); do : > a$i; done; echo 'x = 2' > shop/price.py; rm tests/*.py"

    async def go() -> list[ToolResult]:
        async with executors(1) as (executor,):
            results = await called(executor, [("run_shell", {"command": script})])
            await executor.close()
            return results

    (result,) = asyncio.run(go())
    ops = {change["id"]: change["op"] for change in result.diff}
    assert ops["shop/price.py"] == "update"
    assert ops["tests/test_price.py"] == ops["tests/__init__.py"] == "delete"
    assert "shop/__init__.py" not in ops
    assert "[left out, too many files: " in result.text


def test_a_repository_of_more_than_a_megabyte_is_known_whole() -> None:
    texts = {f"src/part{n}.py": f"x = {n}  # {'.' * (MAX_TEXT - 100)}\n" for n in range(40)}
    made = project().model_copy(update={"files": project().files | texts})

    async def go() -> list[ToolResult]:
        executor = CodeExecutor(made, made.files)
        change = {"command": "for f in src/*; do echo y >> $f; done"}
        results = await called(executor, [("list_files", {}), ("run_shell", change)])
        results += await called(executor, [("run_shell", {"command": "true"})])
        await executor.close()
        return results

    listed, first, second = asyncio.run(go())
    assert listed.text.count("src/part") == 40
    assert "[left out, too much text changed by one call: " in first.text
    assert len(first.diff) + len(second.diff) == 40
    assert {change["op"] for change in first.diff + second.diff} == {"update"}
