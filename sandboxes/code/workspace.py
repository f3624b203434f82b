"""Where an agent works on code: a sandbox with a project's files, and the tools to work on them.

Nothing done here decides a grade (`sandboxes.code.suite` runs the tests elsewhere). Observations
repeat exactly: the clock stands still, times of change too, tests run on a copy at a fixed place
and report no addresses; `pid`s count from the sandbox's own first process.
"""

import io
import json
import tarfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from records.errors import ItemError, TransientError
from sandboxes.code.projects import Project, check_path
from sandboxes.code.suite import CLOCK, ask, template_of
from sandboxes.core import python_env
from sandboxes.core.sandbox import Sandbox
from sandboxes.core.template import WORKSPACE
from sandboxes.lending.leases import LeaseSandbox, lease

TREE = "/opt/tests/tree.py"
REPO = f"{WORKSPACE}/code/repo"
"""Two levels down, so that the folder and its parent are the agent's and their times can stand."""
COPY = "/tmp/run"
MAX_TEXT = 64 << 10
"""Bytes of a file that still counts as one of the candidate's."""
MAX_FILES = 500
MAX_LINES, MAX_HITS, MAX_SHELL, MAX_FAILURES = 400, 60, 8_000, 5
"""Of what one call shows: lines of a file, hits of a search, characters of output, failures."""

INSTANT = int(datetime.fromisoformat(CLOCK).replace(tzinfo=UTC).timestamp())
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

    def __init__(self, project: Project, sandbox: Sandbox) -> None:
        self.project, self._sandbox = project, sandbox
        self.files: dict[str, str | None] = {}
        """The repository as it is now; None for what is no text file of moderate size."""

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> WorkspaceResult:
        """Arguments fit the tool's schema. TransientError when the sandbox is lost."""
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

    async def look(self) -> None:
        """Read the files anew, after something that may have changed them."""
        argv = [python_env.PYTHON, "-I", "-B", TREE, str(PurePosixPath(REPO).parent)]
        argv += [str(INSTANT), str(MAX_TEXT), str(MAX_FILES)]
        done = await self._sandbox.exec(argv)
        try:
            found = json.loads(done.stdout)
        except ValueError as error:
            said = done.stderr.decode(errors="replace")[-300:]
            raise TransientError(f"the workspace cannot be read: {said}") from error
        top = PurePosixPath(REPO).name + "/"
        self.files = {p.removeprefix(top): t for p, t in found.items() if p.startswith(top)}

    def _list(self, folder: str) -> WorkspaceResult:
        below = PurePosixPath(folder.strip("/") or ".")
        names = [path for path in sorted(self.files) if PurePosixPath(path).is_relative_to(below)]
        if not names:
            return WorkspaceResult(f"error: no file below {folder!r}", "not_found")
        shown = [f"{path} ({size_of(self.files[path])})" for path in names[:MAX_LINES]]
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
            f"{path}:{number}: {line}"
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
        if len(text.encode()) > MAX_TEXT:
            return WorkspaceResult(f"error: {path} would be over {MAX_TEXT} bytes", "too_large")
        try:
            check_path(path)
            await self._sandbox.write_file(f"{REPO}/{path}", text.encode())
        except (ItemError, ValueError) as error:
            return WorkspaceResult(f"error: {error}", "not_written")
        await self.look()
        first = max(1, text.count("\n", 0, at))
        last = text.count("\n", 0, at + len(new_text)) + 2
        return self._view(path, first, min(last, first + 40))

    async def _shell(self, command: str) -> WorkspaceResult:
        # a shell's own `date` would tell the time of day
        line = f'date() {{ command date -d "@{INSTANT}" "$@"; }}\n{command}'
        done = await self._sandbox.exec(["/bin/sh", "-c", line], cwd=REPO, timeout_s=SHELL_S)
        await self.look()
        said = (done.stdout + done.stderr).decode(errors="replace")
        if len(said) > MAX_SHELL:
            said = f"{said[:MAX_SHELL]}\n[{len(said) - MAX_SHELL} more characters]"
        if done.timed_out:
            return WorkspaceResult(f"error: not done after {SHELL_S:g} s\n{said}", "timed_out")
        return WorkspaceResult(f"exit code {done.exit_code}\n{said}".strip())

    async def _tests(self, only: str) -> WorkspaceResult:
        copy = f"rm -rf {COPY} && cp -r {REPO} {COPY} && find {COPY} -name __pycache__ -delete"
        await self._sandbox.exec(["/bin/sh", "-c", copy])
        lines = await ask(self._sandbox, self.project, None, root=COPY, only=only)
        await self._sandbox.exec(["rm", "-rf", COPY])
        names = [n for line in lines for n, _ in line.get("tests", ()) if only in n]
        if not names:
            return WorkspaceResult("no test was found" + (f" with {only!r}" if only else ""))
        results = {line["test"]: line["failure"] for line in lines if "test" in line}
        failed = {name: failure for name, failure in results.items() if failure is not None}
        told = [f"FAILED {name}\n  {text}" for name, text in list(failed.items())[:MAX_FAILURES]]
        ended = [] if len(results) == len(names) else ["the run was ended by a test"]
        head = f"{len(results) - len(failed)} passed, {len(failed)} failed"
        rest = more(len(failed) - MAX_FAILURES, "failures")
        return WorkspaceResult("\n".join([head, *told, *rest, *ended]))

    def _text(self, path: str) -> str | WorkspaceResult:
        text = self.files.get(normal(path), "")
        if normal(path) not in self.files:
            return WorkspaceResult(f"error: there is no file {path!r}", "not_found")
        if text is None:
            return WorkspaceResult(
                f"error: {path} is no text file up to {MAX_TEXT} bytes", "binary"
            )
        return text


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
    template = template_of(project)
    tree = Path(__file__).parents[1] / "inside" / "tree.py"
    template = template.model_copy(
        update={"files": template.files | {TREE: tree.read_text(encoding="utf-8")}}
    )
    async with lease(template) as sandbox:
        unpack = ["/bin/sh", "-c", f"mkdir -p {REPO} && tar -x -f - -C {REPO}"]
        done = await sandbox.exec(unpack, stdin=archive_of(files))
        if done.exit_code:
            said = done.stderr.decode(errors="replace")[-300:]
            raise TransientError(f"the workspace could not be filled: {said}")
        workspace = Workspace(project, sandbox)
        await workspace.look()
        yield workspace
