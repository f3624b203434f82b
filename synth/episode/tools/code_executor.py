"""The workspace's tools behind the protocol of executors: one sandbox for each episode."""

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

from records.digest import digest
from sandboxes.code.projects import Project
from sandboxes.code.workspace import Workspace, open_workspace
from sandboxes.core.body import ProgramEndedError
from sandboxes.lending.leases import LeaseSandbox, lease
from synth.episode.tools.tool_result import Changes, ExecutedBy, ToolResult

Made = tuple[str, dict[str, Any]]


class CodeExecutor:
    """Started by the first call. The state is the repository's files, read after every call that
    ran something; a change holds a file's whole text, so that a candidate can be put together again
    from the rows alone.

    Where a call ends the sandbox, that call and all later ones are answered by an error that says
    why, and the episode is scored for what its rows hold: nothing is retried.
    """

    executed_by: ExecutedBy = "code"

    def __init__(
        self, project: Project, files: Mapping[str, str], lease: LeaseSandbox = lease
    ) -> None:
        """`lease` gives a clean sandbox."""
        self._project, self._start, self._lease = project, files, lease
        self._open: AsyncExitStack | None = None
        self._workspace: Workspace | None = None
        self._made: list[Made] = []
        self._hash: str = digest(dict(files))
        self._ended: str | None = None
        """How the sandbox was ended by what the agent did in it."""

    async def call(self, tool: str, arguments: dict[str, Any], *, read_only: bool) -> ToolResult:
        if self._ended is not None:
            return self._not_answered()
        workspace = await self._running()
        self._made.append((tool, arguments))
        before, old = dict(workspace.files), self._hash
        try:
            result = await workspace.call(tool, arguments)
        except ProgramEndedError as error:
            self._ended = error.detail
            return self._not_answered()
        if changes := file_changes(before, workspace.files):
            self._hash = digest(workspace.files)
        is_error = result.error_code is not None
        return ToolResult(result.text, is_error, result.error_code, changes, old, self._hash)

    async def stale(self, tool: str, arguments: dict[str, Any]) -> str | None:
        return None

    def policy_violations(self, tool: str, arguments: dict[str, Any]) -> list[str]:
        return []

    def user_answered(self, turn: int) -> None:
        return None

    def state_hash(self) -> str | None:
        return self._hash

    def snapshot(self) -> list[Made]:
        return list(self._made)

    async def restore(self, snapshot: Sequence[Made]) -> None:
        await self.close()
        self._hash, self._made, self._ended = digest(dict(self._start)), [], None
        for tool, arguments in snapshot:
            await self.call(tool, arguments, read_only=False)

    async def close(self) -> None:
        """End the sandbox. The hash of the last state stays, as the episode's final one."""
        opened, self._open, self._workspace = self._open, None, None
        if opened is not None:
            await opened.aclose()

    def _not_answered(self) -> ToolResult:
        text = f"error: the sandbox has ended, and no tool works any more: {self._ended}"
        return ToolResult(text, True, "sandbox_ended", [], self._hash, self._hash)

    async def _running(self) -> Workspace:
        if self._workspace is None:
            async with AsyncExitStack() as stack:
                opened = open_workspace(self._project, self._start, self._lease)
                self._workspace = await stack.enter_async_context(opened)
                self._open = stack.pop_all()
        return self._workspace


def file_changes(before: Mapping[str, str | None], after: Mapping[str, str | None]) -> Changes:
    """How the files differ, by path. A file that is no text of moderate size has the text null."""
    changes: Changes = []
    for path in sorted({*before, *after}):
        old = {"text": before[path]} if path in before else None
        new = {"text": after[path]} if path in after else None
        if old == new:
            continue
        op = "create" if old is None else "delete" if new is None else "update"
        changes.append({"op": op, "entity": "file", "id": path, "before": old, "after": new})
    return changes
