"""The environments of episodes, played with what a run plays them with, and what came of each play.

A play begins its environment, waits until all the others have theirs, and goes on: so many
sandboxes are held at once, and every one of them works. What its tools answered and its graded
tests found is its `Record`, in which nothing depends on where the sandboxes are.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, Literal, NamedTuple

from records.errors import TransientError
from sandboxes.code.suite import SuiteRun
from sandboxes.code.swe import Bug, baseline_of, inject_bug
from sandboxes.mcp.servers import builtin_servers, fill
from sandboxes.mcp.warm import WarmServers
from synth.episode.tools.code_environments import (
    CodeEnvironment,
    candidate_files,
    code_environments,
)
from synth.episode.tools.code_executor import CodeExecutor
from synth.episode.tools.mcp_executor import McpExecutor
from synth.episode.tools.tool_result import ToolResult

Kind = Literal["problem", "repository", "server"]
TELL_THE_TIME = ("get_file_info",)
"""Tools whose answers are never the same twice: when a file was made."""

START_TRIES = 3
"""Of an environment that does not begin, as an item of a run is tried again."""


class Call(NamedTuple):
    tool: str
    arguments: Mapping[str, Any]
    read_only: bool = False


class Graded(NamedTuple):
    """The code under test, and the names of its graded tests."""

    environment: CodeEnvironment
    start: dict[str, str]
    tests: tuple[str, ...]


class Case(NamedTuple):
    """An environment, and what an agent that knows the answer does in it."""

    kind: Kind
    name: str
    calls: tuple[Call, ...]
    executor: Callable[[WarmServers], CodeExecutor | McpExecutor]
    graded: Graded | None = None


class Record(NamedTuple):
    kind: Kind
    name: str
    answers: tuple[ToolResult, ...]
    at_first: SuiteRun | None = None
    """Of the graded tests, on what the episode began with."""
    in_the_end: SuiteRun | None = None
    lost: str | None = None
    """Why the infrastructure failed it."""


def problems(name: str = "basics") -> list[Case]:
    """The built-in programming problems: a draft is replaced by the reference."""
    found = []
    for environment in code_environments([name]).values():
        problem = environment.problem
        assert problem is not None
        start = dict(environment.project.files)
        edit = {"path": problem.file, "old_text": problem.draft, "new_text": problem.reference}
        calls = worked("cat PROBLEM.md", edit)
        graded = Graded(environment, start, tuple(problem.cases))
        made = partial(code_executor, environment, start)
        found.append(Case("problem", environment.project.name, calls, made, graded))
    return found


async def planted(name: str, seed: int = 0) -> Bug:
    """A bug in a built-in repository that its own tests notice, found where sandboxes are leased
    from."""
    project = code_environments([name])[name].project
    return await inject_bug(project, await baseline_of(project), Random(seed))


def repository(name: str, bug: Bug) -> Case:
    """A software engineer's task: the bug is found and undone."""
    environment = code_environments([name])[name]
    edit = {"path": bug.mutation.path, "old_text": bug.fix.old, "new_text": bug.fix.new}
    calls = worked("git --version; ls", edit)
    graded = Graded(environment, bug.files, (*bug.fail_to_pass, *bug.pass_to_pass))
    return Case("repository", name, calls, partial(code_executor, environment, bug.files), graded)


def server(name: str) -> Case:
    """A built-in MCP server: its samples are called, and the first goal that changes its state is
    reached where there is one."""
    config = builtin_servers()[name]
    samples = {k: v for k, v in config.samples.items() if k not in TELL_THE_TIME}
    calls = [Call(tool, arguments, True) for tool, arguments in samples.items()]
    if goal := next((goal for goal in config.goals if goal.writes and not goal.requires), None):
        first = {slot: values[0] for slot, values in config.slots.items()}
        calls += [Call(call.tool, fill(call.arguments, first)) for call in goal.calls]

    def made(servers: WarmServers) -> McpExecutor:
        return McpExecutor(partial(servers.open, config))

    return Case("server", name, tuple(calls), made)


def worked(look: str, edit: Mapping[str, Any]) -> tuple[Call, ...]:
    return (
        Call("run_shell", {"command": look}),
        Call("run_tests", {}, True),
        Call("edit_file", edit),
        Call("run_tests", {}, True),
        Call("run_shell", {"command": "ls; wc -c *"}),
    )


def code_executor(
    environment: CodeEnvironment, start: Mapping[str, str], servers: WarmServers
) -> CodeExecutor:
    return CodeExecutor(environment.project, start, servers.pool.lease)


class Curtain(NamedTuple):
    """Between the two halves of a play."""

    held: asyncio.Event
    """It has its sandbox, or never will."""
    goes_on: asyncio.Event


@dataclass
class Plays:
    """The plays of many cases at once. `run` gives their records, in the order of the cases."""

    servers: WarmServers
    begun_at_once: int = 4
    at_once: int = 4
    """Plays that go on at the same time once all have begun."""
    alone: int = 0
    """Cases, the first ones, that go on one after the other before all others do: how long their
    calls take is `took`."""
    graded: int | None = None
    """Cases, the first ones, that are graded; None for all."""
    took: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """What was waited for -> seconds."""
    begun_again: int = 0

    async def run(
        self, cases: Sequence[Case], when_held: Callable[[], Awaitable[None]] | None = None
    ) -> list[Record]:
        """`when_held` is called while every case has its sandbox, before any goes on."""
        begins = asyncio.Semaphore(self.begun_at_once)
        turns = asyncio.Semaphore(self.at_once)
        curtains = [Curtain(asyncio.Event(), asyncio.Event()) for _ in cases]
        async with asyncio.TaskGroup() as group:
            plays = [
                group.create_task(self._play(number, case, begins, turns, curtains[number]))
                for number, case in enumerate(cases)
            ]
            for each in curtains:
                await each.held.wait()
            if when_held is not None:
                await when_held()
            for number, play in enumerate(plays):
                curtains[number].goes_on.set()
                if number < self.alone:
                    await play
        return [play.result() for play in plays]

    async def _play(
        self, number: int, case: Case, begins: asyncio.Semaphore, turns: asyncio.Semaphore,
        curtain: Curtain,
    ) -> Record:  # fmt: skip
        record, timed = Record(case.kind, case.name, ()), number < self.alone
        try:
            try:
                record = await self._worked(case, record, begins, turns, curtain, timed)
            finally:
                curtain.held.set()  # whoever waits for all does not wait for one that is lost
            if case.graded is not None and (self.graded is None or number < self.graded):
                async with turns:
                    record = await self._judged(record, case.graded, timed)
        except TransientError as error:
            record = record._replace(lost=str(error))
        return record

    async def _worked(
        self, case: Case, record: Record, begins: asyncio.Semaphore, turns: asyncio.Semaphore,
        curtain: Curtain, timed: bool,
    ) -> Record:  # fmt: skip
        first, *others = case.calls
        executor = case.executor(self.servers)
        try:
            async with begins:
                answers = [await self._begun(case, executor, first)]
            curtain.held.set()
            await curtain.goes_on.wait()
            async with turns:
                for call in others:
                    answers.append(await self._called(case, executor, call, timed))
        finally:
            await executor.close()
        return record._replace(answers=tuple(answers))

    async def _begun(
        self, case: Case, executor: CodeExecutor | McpExecutor, call: Call
    ) -> ToolResult:
        for tried in range(START_TRIES):
            try:
                return await self._called(case, executor, call, False)
            except TransientError:
                if tried + 1 == START_TRIES:
                    raise
                self.begun_again += 1
        raise AssertionError("a try either answers or raises")

    async def _called(
        self, case: Case, executor: CodeExecutor | McpExecutor, call: Call, timed: bool
    ) -> ToolResult:
        begun = time.monotonic()
        found = await executor.call(call.tool, dict(call.arguments), read_only=call.read_only)
        if timed:
            what = "call of a server's tool" if case.kind == "server" else call.tool
            self.took[what].append(time.monotonic() - begun)
        return found

    async def _judged(self, record: Record, graded: Graded, timed: bool) -> Record:
        environment, start, tests = graded
        changes = [change for answer in record.answers for change in answer.diff]
        runs = []
        for files in (start, candidate_files(start, changes)):
            begun = time.monotonic()
            runs.append(await environment.judge(files, tests))
            if timed:
                self.took[f"graded tests of a {record.kind}"].append(time.monotonic() - begun)
        return record._replace(at_first=runs[0], in_the_end=runs[1])


def reached(record: Record) -> bool:
    """Whether a play that was graded fails at first and passes in the end, and the calls of every
    play did what they are for."""
    fine = record.lost is None and not any(answer.is_error for answer in record.answers)
    if record.at_first is None or record.in_the_end is None:
        return fine
    whole = set(record.in_the_end.outcomes)
    return fine and record.at_first.passed < whole and record.in_the_end.passed == whole
