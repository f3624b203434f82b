"""Projects from wherever people have them: a package index, an archive, a git repository.

A definition is kept only if the project's own tests pass in a sandbox as they are, twice, and
notice a bug that is injected into it: of anything else no task can be made.
"""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import yaml

from records.errors import ConfigError
from sandboxes.code.packages import PackageIndex, machine, project_of_files, project_of_index, whole
from sandboxes.code.projects import MAX_DEFINITION, Project
from sandboxes.code.reading import files_of_git, files_of_sdist, text_files
from sandboxes.code.suite import STATUSES
from sandboxes.code.swe import Baseline, Bug, baseline_of, inject_bug
from sandboxes.core.network import AUTHORITIES
from sandboxes.core.template import WORKSPACE
from tool_specs.domains.loading import checked, read_yaml

PINNED = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*)==(?P<version>[A-Za-z0-9][\w.+!-]*)", re.ASCII)
REMOTE = re.compile(r"(https?|git)://\S+")
REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*")
ALLOWED = "NAME==VERSION, a git repository's folder or URL (https, http, git), or a .tar.gz"

CLONE = """
set -e
git init -q --bare clone
git -C clone -c protocol.file.allow=never fetch -q --depth 1 -- "$1" "$2"
"""
"""Shell: one commit of a repository. Nothing of it is checked out, so no filter, hook or submodule
of its own is ever run."""


async def project_from(
    source: str,
    *,
    into: Path,
    name: str | None = None,
    revision: str = "HEAD",
    index: PackageIndex = PackageIndex(),
    requires: Sequence[str] = (),
    **settings: object,
) -> Project:
    """The project at `source` (ALLOWED); the packages that its tests need go to the folder `into`.

    `settings` are fields of `Project`. ConfigError where there is none, TransientError where a
    network does not answer.
    """
    wanted: dict[str, Any] = {"into": into, "index": index, "requires": requires, **settings}
    if pinned := PINNED.fullmatch(source):
        project = await project_of_index(pinned["name"], pinned["version"], **wanted)
        return project.model_copy(update={"name": name}) if name else project
    path = Path(source)
    if REMOTE.fullmatch(source):
        files = await fetch_git(source, revision, index=index)
    elif path.is_file() and source.endswith((".tar.gz", ".tgz")):
        files = await files_of_sdist(path)
    elif source and path.is_dir():
        files = await files_of_git(path, revision)
    else:
        raise ConfigError(f"{source!r} is no project; allowed: {ALLOWED}")
    last = source.rstrip("/").rpartition("/")[2].strip(".") or path.resolve().name
    stem = re.sub(r"(-[0-9][^-]*)?(\.git|\.tar\.gz|\.tgz)?$", "", last)
    return await project_of_files(files, name=name or named_like(stem), **wanted)


def named_like(text: str) -> str:
    name = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")
    return name if name[:1].isalpha() else f"project_{name}"


async def fetch_git(
    url: str, revision: str = "HEAD", *, index: PackageIndex = PackageIndex()
) -> dict[str, str]:
    """The text files of one commit of a repository elsewhere, fetched and read in a sandbox with
    network. ConfigError for a revision that is none, TransientError where it cannot be fetched."""
    if not REVISION.fullmatch(revision):
        raise ConfigError(f"a revision is a branch, a tag or a commit, got {revision!r}")
    env = index.env | {"GIT_SSL_CAINFO": AUTHORITIES, "GIT_TERMINAL_PROMPT": "0"}
    argv = ["/bin/sh", "-c", CLONE, "sh", url, revision]
    async with machine(f"fetching {revision} of {url}") as sandbox:
        done = await sandbox.exec(argv, env=env, cwd=WORKSPACE)
        if b"couldn't find remote ref" in done.stderr:
            raise ConfigError(f"{url} has no revision {revision!r}")
        whole(done, f"fetching {revision} of {url}")
        return await text_files(
            sandbox,
            {
                "kind": "commit",
                "place": f"{WORKSPACE}/clone",
                "revision": "FETCH_HEAD",
                "below": "",
            },
            f"{revision} of {url}",
        )


class ProjectProof(NamedTuple):
    """What running the tests of a project showed."""

    baseline: Baseline
    bug: Bug
    """One that its tests notice."""

    @property
    def counts(self) -> dict[str, int]:
        """Status -> how many tests have it twice, and how many are `unsteady`."""
        unsteady = frozenset(self.baseline.unsteady)
        others = self.baseline.others.items()
        found = Counter(outcome.status for name, outcome in others if name not in unsteady)
        found["passed"] = len(self.baseline.tests)
        return {status: found[status] for status in STATUSES} | {"unsteady": len(unsteady)}


async def prove(project: Project) -> ProjectProof:
    """Run the tests as they are, twice, then with bugs in the sources until one shows.

    ItemError where no test passes, or none notices any bug.
    """
    baseline = await baseline_of(project)
    return ProjectProof(baseline, await inject_bug(project, baseline, Random(0)))


class _Dumper(yaml.SafeDumper):
    """Files as blocks, where YAML can keep them exactly so."""


def _block(dumper: yaml.SafeDumper, text: str) -> Any:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _block)


def load_project(path: Path) -> Project:
    """ConfigError, naming file and place, for whatever is wrong with the definition."""
    return checked(Project, read_yaml(path, max_bytes=MAX_DEFINITION), origin=str(path))


def write_definition(project: Project, path: Path) -> None:
    """As YAML that `load_project` reads back as the same project. ConfigError where the file
    exists, or cannot be written."""
    fields = project.model_dump(mode="json", exclude_defaults=True)
    fields["files"] = fields.pop("files")  # last: they are long
    try:
        with path.open("x", encoding="utf-8") as out:
            yaml.dump(fields, out, _Dumper, allow_unicode=True, sort_keys=False, width=1000)
    except FileExistsError:
        raise ConfigError(f"{path} exists already; choose another name") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}") from error
    try:
        kept = load_project(path) == project
    except ConfigError:
        kept = False
    if not kept:  # a text that YAML's blocks cannot hold
        path.write_text(yaml.safe_dump(fields, sort_keys=False), encoding="utf-8")
