"""Where an agent works on code: a sandbox with a project's files, and the tools to work on them.

Nothing done here decides a grade (`sandboxes.code.suite` runs the tests elsewhere). Observations
repeat exactly: the clock stands still, times of change too, tests run on a copy at a fixed place
and report no addresses; `pid`s count from the sandbox's own first process.

What the agent does here is the agent's: whatever it leaves behind (a full disk, a repository that
is none any more, a hundred thousand files, names and texts that are no Unicode), a call ends in a
result, and one that could not do what it is for says why. Only a sandbox that has ended raises.
"""

import io
import tarfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from records.errors import ItemError, TransientError
from sandboxes.code.projects import Project, check_path
from sandboxes.code.repository import (
    INSTANT,
    LOOK_S,
    MAX_TEXT,
    REPO,
    Repository,
    able_to_look,
    how_it_ended,
    plain,
)
from sandboxes.code.suite import (
    WITHOUT_PASS,
    RunnerAnswer,
    SuiteRun,
    ask,
    outcomes_in,
    template_of,
    tests_in,
)
from sandboxes.core.sandbox import Sandbox
from sandboxes.lending.leases import LeaseSandbox, lease

COPY = "/tmp/run"
MAKE_COPY = f"""
rm -rf {COPY} && {{
  cp -r {REPO} {COPY}
  find {COPY} -name __pycache__ -prune -exec rm -rf {{}} +
  test -d {COPY}
}}"""
"""Whole as far as its files can be read and the disk has room."""
MAX_LINES, MAX_HITS, MAX_SHELL, MAX_FAILURES = 400, 60, 8_000, 5
"""Of what one call shows: lines of a file, hits of a search, characters of output, failures."""

SHELL_S = 20.0

_PATH = {"type": "string", "description": "Path relative to the repository, such as README.md."}


class WorkspaceTool(NamedTuple):
    name: str
    description: str
    properties: dict[str, Any]
    required: tuple[str, ...]
    read_only: bool

    @property
    def input_schema(self) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": self.properties,
            "required": list(self.required),
            "additionalProperties": False,
        }


TOOLS = (
    WorkspaceTool(
        "list_files",
        "List the files of the repository. Returns one path per line with its number of lines.",
        {"folder": {"type": "string", "description": "Only files below this folder."}},
        (),
        True,
    ),
    WorkspaceTool(
        "view_file",
        "View a text file of the repository. Returns its lines with their numbers.",
        {
            "path": _PATH,
            "first_line": {"type": "integer", "minimum": 1, "description": "Default: 1."},
            "last_line": {"type": "integer", "minimum": 1, "description": "Default: the last."},
        },
        ("path",),
        True,
    ),
    WorkspaceTool(
        "search_text",
        "Search the repository's files for a text. Returns path, number and text of each line.",
        {"text": {"type": "string", "minLength": 1, "description": "As it stands in a line."}},
        ("text",),
        True,
    ),
    WorkspaceTool(
        "edit_file",
        "Replace a text in a file of the repository. It must stand there exactly once, spaces and"
        " line breaks included; an empty old text makes a new file. Returns the lines as they are"
        " now.",
        {
            "path": _PATH,
            "old_text": {"type": "string", "description": "What is replaced."},
            "new_text": {"type": "string", "description": "What stands there afterwards."},
        },
        ("path", "old_text", "new_text"),
        False,
    ),
    WorkspaceTool(
        "run_shell",
        "Run a shell command in the repository, without network. Returns exit code and output.",
        {"command": {"type": "string", "minLength": 1, "description": "For /bin/sh."}},
        ("command",),
        False,
    ),
    WorkspaceTool(
        "run_tests",
        "Run the repository's tests on a copy of it. Returns how many passed, and what the first"
        " that failed say.",
        {
            "only": {
                "type": "string",
                "description": "Part of the tests' names; others are not run. Default: all.",
            }
        },
        (),
        True,
    ),
)


class WorkspaceResult(NamedTuple):
    text: str
    error_code: str | None = None
    """None unless the call could not do what it is for. A failing test or command is no error."""


class Workspace:
    """The tools of one sandbox. Calls come one after the other. Made by `open_workspace`."""

    def __init__(self, project: Project, sandbox: Sandbox, files: Mapping[str, str]) -> None:
        """`files` are what the repository begins with."""
        self.project, self._sandbox = project, sandbox
        self._repository = Repository(sandbox, files)

    @property
    def files(self) -> dict[str, str | None]:
        """The repository as it is now; None for what is no text file of moderate size."""
        return self._repository.files

    @property
    def problem(self) -> str | None:
        """Why the files cannot be read now; every call's result is an error as long as this is."""
        return self._repository.problem

    async def look(self) -> list[str]:
        """See `Repository.look`."""
        return await self._repository.look()

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> WorkspaceResult:
        """Arguments fit the tool's schema. ProgramEndedError where what runs here has ended the
        sandbox, TransientError where it was lost otherwise."""
        if self.problem is not None:
            await self.look()
        result = await self._called(tool, arguments)
        if (problem := self.problem) is None:
            return result
        return WorkspaceResult(f"{result.text}\nerror: {problem}", "unreadable")

    async def _called(self, tool: str, arguments: Mapping[str, Any]) -> WorkspaceResult:
        match tool:
            case "list_files":
                return self._list(arguments.get("folder", "."))
            case "view_file":
                return self._view(**arguments)
            case "search_text":
                return self._search(arguments["text"])
            case "edit_file":
                return await self._edit(**arguments)
            case "run_shell":
                return await self._shell(arguments["command"])
            case "run_tests":
                return await self._tests(arguments.get("only", ""))
        raise ValueError(f"the workspace has no tool {tool!r}")

    def _list(self, folder: str) -> WorkspaceResult:
        below = PurePosixPath(folder.strip("/") or ".")
        names = [path for path in sorted(self.files) if PurePosixPath(path).is_relative_to(below)]
        if not names:
            return WorkspaceResult(f"error: no file below {folder!r}", "not_found")
        shown = [f"{plain(path)} ({size_of(self.files[path])})" for path in names[:MAX_LINES]]
        return WorkspaceResult("\n".join(shown + more(len(names) - MAX_LINES, "files")))

    def _view(
        self, path: str, first_line: int = 1, last_line: int | None = None
    ) -> WorkspaceResult:
        text = self._text(path)
        if isinstance(text, WorkspaceResult):
            return text
        lines = text.splitlines()
        last = min(last_line or len(lines), first_line + MAX_LINES - 1, len(lines))
        shown = [f"{n:5}  {lines[n - 1]}" for n in range(first_line, last + 1)]
        if not shown:
            return WorkspaceResult(f"error: {path} has {len(lines)} lines", "not_found")
        rest = min(last_line or len(lines), len(lines)) - last
        return WorkspaceResult("\n".join(shown + more(rest, "lines")))

    def _search(self, text: str) -> WorkspaceResult:
        hits = [
            f"{plain(path)}:{number}: {line}"
            for path in sorted(self.files)
            for number, line in enumerate((self.files[path] or "").splitlines(), 1)
            if text in line
        ]
        if not hits:
            return WorkspaceResult(f"no line has {text!r}")
        return WorkspaceResult("\n".join(hits[:MAX_HITS] + more(len(hits) - MAX_HITS, "lines")))

    async def _edit(self, path: str, old_text: str, new_text: str) -> WorkspaceResult:
        path = normal(path)
        if not old_text:
            if path in self.files:
                return WorkspaceResult(f"error: {path} exists; give the text to replace", "exists")
            text, at = new_text, 0
        else:
            found = self._text(path)
            if isinstance(found, WorkspaceResult):
                return found
            if (count := found.count(old_text)) != 1:
                where = f"stands {count} times in" if count else "does not stand in"
                code = "ambiguous" if count else "no_match"
                return WorkspaceResult(f"error: the old text {where} {path}", code)
            at = found.index(old_text)
            text = found[:at] + new_text + found[at + len(old_text) :]
        try:
            data = text.encode()
            check_path(path)
            if len(data) > MAX_TEXT:
                return WorkspaceResult(f"error: {path} would be over {MAX_TEXT} bytes", "too_large")
            await self._sandbox.write_file(f"{REPO}/{path}", data)
        except (ItemError, ValueError) as error:
            return WorkspaceResult(f"error: {error}", "not_written")
        left = await self.look()
        first = max(1, text.count("\n", 0, at))
        last = text.count("\n", 0, at + len(new_text)) + 2
        seen = self._view(path, first, min(last, first + 40))
        return seen._replace(text="\n".join([seen.text, *left]))

    async def _shell(self, command: str) -> WorkspaceResult:
        # a shell's own `date` would tell the time of day
        line = f'date() {{ command date -d "@{INSTANT}" "$@"; }}\n{command}'
        place = REPO if self.problem is None else "/"
        done = await self._sandbox.exec(["/bin/sh", "-c", line], cwd=place, timeout_s=SHELL_S)
        left = [] if place == REPO else [f"[run in {place}: {self.problem}]"]
        left += await self.look()
        said = (done.stdout + done.stderr).decode(errors="replace")
        if len(said) > MAX_SHELL:
            said = f"{said[:MAX_SHELL]}\n[{len(said) - MAX_SHELL} more characters]"
        head, code = f"exit code {done.exit_code}", None
        if done.timed_out:
            head, code = f"error: not done after {SHELL_S:g} s", "timed_out"
        return WorkspaceResult("\n".join([f"{head}\n{said}".strip(), *left]), code)

    async def _tests(self, only: str) -> WorkspaceResult:
        copied = await self._sandbox.exec(["/bin/sh", "-c", MAKE_COPY], cwd="/", timeout_s=LOOK_S)
        if copied.exit_code:
            why = how_it_ended(copied)
            return WorkspaceResult(f"error: the repository cannot be copied: {why}", "not_copied")
        told = await ask(self._sandbox, self.project, None, root=COPY, only=only)
        await self._sandbox.exec(["rm", "-rf", COPY], cwd="/", timeout_s=LOOK_S)
        await self.look()  # a test may reach more than its copy
        run = SuiteRun(outcomes_in(told.lines))
        names = [test.name for test in tests_in(told.lines) if only in test.name]
        if not names:
            return WorkspaceResult("no test was found" + (f" with {only!r}" if only else ""))
        fine = {status: run.of(status) for status in ("passed", *WITHOUT_PASS)}
        failed = [name for name in run.outcomes if not any(name in f for f in fine.values())]
        words = [f"FAILED {n}\n  {run.outcomes[n].words}" for n in failed[:MAX_FAILURES]]
        ended = [] if len(run.outcomes) == len(names) else [why_short(told)]
        head = f"{len(fine['passed'])} passed, {len(failed)} failed"
        head += "".join(f", {len(fine[s])} {s}" for s in WITHOUT_PASS if fine[s])
        rest = more(len(failed) - MAX_FAILURES, "failures")
        return WorkspaceResult("\n".join([head, *words, *rest, *ended]))

    def _text(self, path: str) -> str | WorkspaceResult:
        text = self.files.get(normal(path), "")
        if normal(path) not in self.files:
            return WorkspaceResult(f"error: there is no file {path!r}", "not_found")
        if text is None:
            return WorkspaceResult(
                f"error: {path} is no text file up to {MAX_TEXT} bytes", "binary"
            )
        return text


def why_short(told: RunnerAnswer) -> str:
    """Why not every test was run."""
    if told.ended.timed_out:
        return "the run was ended: it took too long"
    return "the run was ended by a test"


def normal(path: str) -> str:
    return str(PurePosixPath(path.removeprefix(f"{REPO}/").removeprefix("./")))


def size_of(text: str | None) -> str:
    return "no text" if text is None else f"{len(text.splitlines())} lines"


def more(count: int, what: str) -> list[str]:
    return [f"[{count} more {what}]"] if count > 0 else []


def archive_of(files: Mapping[str, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path, text in sorted(files.items()):
            info = tarfile.TarInfo(path)
            info.size, info.mtime = len(data := text.encode()), INSTANT
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


@asynccontextmanager
async def open_workspace(
    project: Project, files: Mapping[str, str], lease: LeaseSandbox = lease
) -> AsyncIterator[Workspace]:
    """A clean sandbox with these files in its working folder. TransientError if it fails."""
    async with lease(able_to_look(template_of(project))) as sandbox:
        unpack = ["/bin/sh", "-c", f"mkdir -p {REPO} && tar -x -f - -C {REPO}"]
        done = await sandbox.exec(unpack, stdin=archive_of(files))
        if done.exit_code:
            said = done.stderr.decode(errors="replace")[-300:]
            raise TransientError(f"the workspace could not be filled: {said}")
        workspace = Workspace(project, sandbox, files)
        await workspace.look()
        if (problem := workspace.problem) is not None:  # and nothing was done here yet
            raise TransientError(problem)
        yield workspace
