"""Code as an environment of tasks: repositories and problems, the one set of tools that works on
them all, and what an episode starts from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from records.digest import digest
from records.errors import ConfigError
from records.tables.schemas import Row
from sandboxes.code.problems import FOLDER as PROBLEMS
from sandboxes.code.problems import Problem, ProblemSet, judge, load_problems
from sandboxes.code.projects import MAX_DEFINITION, Project, builtin_projects
from sandboxes.code.repository import REPO
from sandboxes.code.suite import SuiteRun, run_suite
from sandboxes.code.workspace import TOOLS, WorkspaceTool
from synth.rubrics.episode import net_changes
from tool_specs.domains.loading import checked, read_yaml

LICENSE = "Apache-2.0"
"""Of the tools; a repository has its own."""

FILE = "file"
"""Entity of the changes that a workspace's tools make; the id is the path."""


@dataclass(frozen=True)
class CodeEnvironment:
    """A repository, or a problem with its examples for a repository."""

    project: Project
    problem: Problem | None = None

    @cached_property
    def definition(self) -> str:
        """Digest of all that decides what a task on it is."""
        return digest("code", (self.problem or self.project).identity())

    @property
    def about(self) -> str:
        return f"{self.project.description.strip()} It lies in {REPO}, with its tests."

    def start(self, task: Row) -> dict[str, str]:
        """The files that an episode of the task begins with."""
        return start_files(self.project, task["initial_state"]["edits"])

    async def judge(self, candidate: Mapping[str, str], names: Sequence[str]) -> SuiteRun:
        """Run the graded tests, in sandboxes that no agent was in."""
        if self.problem is not None:
            return await judge(self.problem, candidate, names)
        return await run_suite(self.project, candidate, names)


def start_files(project: Project, edits: Sequence[Mapping[str, str]]) -> dict[str, str]:
    files = dict(project.files)
    for edit in edits:
        files[edit["path"]] = files[edit["path"]].replace(edit["old"], edit["new"], 1)
    return files


def candidate_files(
    start: Mapping[str, str], changes: Sequence[Mapping[str, Any]]
) -> dict[str, str]:
    """The files after an episode's changes; what is no text of moderate size is left out."""
    files = dict(start)
    for change in net_changes(c for c in changes if c["entity"] == FILE):
        files.pop(change["id"], None)
        text = (change["after"] or {}).get("text")
        if text is not None:
            files[change["id"]] = text
    return files


def code_environments(names: Sequence[str]) -> dict[str, CodeEnvironment]:
    """The environments by their names: `all`, a built-in repository or problem set, or the path of
    a definition (.yaml). ConfigError for what is none of these."""
    sets = {path.stem: path for path in sorted(PROBLEMS.glob("*.yaml"))}
    environments: list[CodeEnvironment] = []
    for name in names:
        if name in ("all", *builtin_projects()):
            wanted = builtin_projects() if name == "all" else {name: builtin_projects()[name]}
            environments += map(CodeEnvironment, wanted.values())
        if name in ("all", *sets):
            paths = sets.values() if name == "all" else [sets[name]]
            environments += [_of(problem) for path in paths for problem in load_problems(path)]
        if name.endswith((".yaml", ".yml")):
            environments += _load(Path(name))
        elif name not in ("all", *builtin_projects(), *sets):
            known = ", ".join(["all", *builtin_projects(), *sets])
            raise ConfigError(f"code names {name!r}; allowed: {known}, or the path of a .yaml file")
    return {environment.project.name: environment for environment in environments}


def _of(problem: Problem) -> CodeEnvironment:
    return CodeEnvironment(problem.project(), problem)


def _load(path: Path) -> list[CodeEnvironment]:
    data = read_yaml(path, max_bytes=MAX_DEFINITION)
    if isinstance(data, dict) and "problems" in data:
        return [_of(problem) for problem in checked(ProblemSet, data, origin=str(path)).problems]
    return [CodeEnvironment(checked(Project, data, origin=str(path)))]


def is_code(row: Row) -> bool:
    """Whether an agent, a task or a tool belongs to the workspace."""
    return row["domain_id"] == CODE_DOMAIN


def bug_of(task: Row) -> str | None:
    """Id of the bug that a task on code is about. None for other tasks, and for those that were
    made before bugs had ids."""
    return task["initial_state"].get("bug") if is_code(task) else None


def _spec(tool: WorkspaceTool) -> list[Any]:
    return [tool.name, tool.description, tool.input_schema, tool.read_only]


CODE_DOMAIN = digest("domain", "code_workspace", [_spec(tool) for tool in TOOLS])
"""`domain_id` of the workspace: its tools are the same for every repository."""


def code_tool_ids() -> list[str]:
    return [digest("tool", CODE_DOMAIN, _spec(tool)) for tool in TOOLS]


def domain_row() -> Row:
    return {
        "domain_id": CODE_DOMAIN,
        "name": "code_workspace",
        "title": "Code workspace",
        "category": "software_apps",
        "parent_id": None,
        "description": "A repository with a test suite, and a sandbox to work on it in: files are"
        " viewed, searched and edited, tests and commands are run.",
        "entities": {FILE: {"key": "path", "fields": {"path": {"type": "string"}}}},
        "seed_state": {},
        "policy": [],
        "split": "train",
        # no state machine can be made of it again
        "clock": None,
        "rules": None,
        "field_order": None,
        "time": None,
    }


def tool_rows() -> list[Row]:
    """One row for each tool, in the order of their definition. They are executed by a sandbox."""
    return [
        {
            "tool_id": tool_id,
            "name": tool.name,
            "source": "synthetic",
            "category": "software_apps",
            "domain_id": CODE_DOMAIN,
            "server": None,
            "description": tool.description,
            "input_schema": tool.input_schema,
            "output_schema": {"type": "string"},
            "annotations": {
                "readOnlyHint": tool.read_only,
                "destructiveHint": not tool.read_only,
                "idempotentHint": tool.read_only,
                "openWorldHint": False,
            },
            "semantics_json": None,
            "evolve_op": "handwritten",
            "generation": 0,
            "parent_id": None,
            "spec_hash": digest("tool", _spec(tool)),
            "license": LICENSE,
            "drop_reason": None,
            "split": "train",
            "params": None,
            "proof": None,
            "time": None,
        }
        for tool, tool_id in zip(TOOLS, code_tool_ids(), strict=True)
    ]
