"""The files of a repository in a sandbox, as the host knows them: looked at anew after every call.

Whoever works there may leave anything behind, so an answer is believed in its form alone, and a
look that fails is no error of this module: it leaves `problem`, for the agent to read.
"""

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from sandboxes.code.projects import check_path
from sandboxes.code.suite import CLOCK
from sandboxes.core import python_env
from sandboxes.core.sandbox import ExecResult, Sandbox
from sandboxes.core.template import WORKSPACE, SandboxTemplate

TREE = "/opt/tests/tree.py"
REPO = f"{WORKSPACE}/code/repo"
"""Two levels down, so that the folder and its parent are the agent's and their times can stand."""
INSTANT = int(datetime.fromisoformat(CLOCK).replace(tzinfo=UTC).timestamp())

MAX_TEXT = 64 << 10
"""Bytes of a file that still counts as one of the candidate's."""
MAX_FILES, MAX_ENTRIES = 2_500, 20_000
"""Files that are known, more than a project can begin with; new names that a look goes through."""
MAX_CHANGED = 2_000_000
"""Bytes, as JSON, of the texts that one call may change. The next look takes what is left."""

LOOK_S = 60.0
"""No more than a bound, for a machine in trouble."""


class SeenFiles(BaseModel):
    """What `inside/tree.py` answers."""

    model_config = ConfigDict(strict=True)

    folder: bool
    files: dict[str, str | None] = Field(max_length=MAX_FILES)
    gone: list[Annotated[int, Field(ge=0)]]
    left: dict[str, list[str]]


def able_to_look(template: SandboxTemplate) -> SandboxTemplate:
    """The template with what a look needs."""
    program = Path(__file__).parents[1] / "inside" / "tree.py"
    limits = template.limits.model_copy(update={"output_bytes": 2 * MAX_CHANGED})
    files = template.files | {TREE: program.read_text(encoding="utf-8")}
    return template.model_copy(update={"files": files, "limits": limits})


class Repository:
    def __init__(self, sandbox: Sandbox, files: Mapping[str, str]) -> None:
        """`files` are what it begins with."""
        self._sandbox = sandbox
        self.files: dict[str, str | None] = dict(files)
        """As it is now; None for what is no text file of moderate size."""
        self._digests = {path: digest_of(text) for path, text in files.items()}
        self.problem: str | None = None
        """Why it could not be read when it was looked at last. The files are then those that it had
        before, or none where there is no repository any more."""
        self._left: list[str] = []

    async def look(self) -> list[str]:
        """Read the files that may have changed. What the agent should know of those that could not
        be taken, a line for each reason; nothing that the look before had found already."""
        folder = PurePosixPath(REPO)
        request = {
            "root": str(folder.parent),
            "top": folder.name,
            "instant": INSTANT,
            "known": list(self._digests.items()),
            "file_bytes": MAX_TEXT,
            "changed_bytes": MAX_CHANGED,
            "new_files": MAX_FILES - len(self._digests),
            "new_entries": MAX_ENTRIES,
        }
        argv = [python_env.base_python(), "-I", "-S", "-B", TREE]
        asked = json.dumps(request).encode()
        done = await self._sandbox.exec(argv, stdin=asked, cwd="/", timeout_s=LOOK_S)
        try:
            tree = SeenFiles.model_validate_json(done.stdout)
            self._learn(tree)
        except ValueError:
            self.problem = f"the repository could not be read: {how_it_ended(done)}"
            return []
        known, self._left = self._left, left_out(tree)
        return [line for line in self._left if line not in known]

    def _learn(self, tree: SeenFiles) -> None:
        """ValueError for what no look at a repository can tell."""
        known = list(self._digests)
        if any(place >= len(known) for place in tree.gone):
            raise ValueError("a file is gone that was not there")
        for path in tree.files:
            check_path(path)
        for place in set(tree.gone):
            del self.files[known[place]], self._digests[known[place]]
        self.files |= tree.files
        self._digests |= {path: digest_of(text) for path, text in tree.files.items()}
        self.problem = None if tree.folder else f"{REPO} is no folder that can be read"


def left_out(tree: SeenFiles) -> list[str]:
    return [
        f"[left out, {why}: {', '.join(map(plain, paths))}]" for why, paths in tree.left.items()
    ]


def how_it_ended(done: ExecResult) -> str:
    """In words, for a command that is ours and should have gone well."""
    if done.timed_out:
        return "its time was up"
    said = done.stderr.decode(errors="replace").strip()[-300:]
    memory = "the memory limit was reached, " if done.out_of_memory else ""
    return f"{memory}exit code {done.exit_code}{said and ': '}{said}"


def digest_of(text: str | None) -> str | None:
    return None if text is None else hashlib.blake2b(text.encode(), digest_size=32).hexdigest()


def plain(path: str) -> str:
    """A path as one line shows it."""
    return path if path.isprintable() else repr(path)
