"""A project that code tasks are about: source files, a test suite, and how the suite is run.

Projects that come with this package are data: `repositories/*.yaml`, files and all. Others are
read from a git repository or a source distribution; of those only text files count.
"""

import io
import re
import subprocess
import tarfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path, PurePosixPath
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from records.config import Config
from records.errors import ConfigError
from tool_specs.domains.loading import definitions_in

FOLDER = Path(__file__).parent / "repositories"

MAX_FILE, MAX_FILES, MAX_TOTAL = 200_000, 2_000, 8_000_000
"""Bounds of a project's text files: bytes of one, their number, bytes of all."""

MAX_DEFINITION = 2 * MAX_TOTAL
"""Bytes of a definition: text that YAML must escape or indent takes more than it is long."""

REVISION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./~^-]*")
"""Of a git repository on this machine; what begins with a dash would be an option."""

GIT_S = 60.0
"""Wall clock for reading a commit."""

STEERS_TESTS = frozenset(
    {"conftest.py", "pytest.ini", "tox.ini", "setup.cfg", "pyproject.toml", ".coveragerc"}
    | {"sitecustomize.py", "usercustomize.py", "pytest.toml", ".pytest.toml", ".pytest.ini"}
)
"""Names of files, in any folder, that decide how tests are found or judged."""


class Project(Config):
    NOT_IDENTITY: ClassVar[frozenset[str]] = frozenset({"site"})

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    title: str = ""
    description: str = ""
    files: dict[str, str] = Field(min_length=1)
    """Text by path relative to the root, the tests included."""

    test_folder: str = "tests"
    """What lies in it judges, and a candidate's own version of it is not looked at."""

    paths: tuple[str, ...] = (".",)
    """Folders that Python imports from, `.` or `src` most often."""

    runner: Literal["unittest", "pytest"] = "unittest"
    site: Path | None = None
    """Folder of installed packages that the project needs; pytest among them where that runs."""

    license: str = "unknown"
    split: Literal["train", "heldout_domain"] = "train"

    @model_validator(mode="after")
    def _paths_stay_inside(self) -> Self:
        for path in self.files:
            check_path(path)
        if not any(self.is_test(path) for path in self.files):
            raise ValueError(
                f"project {self.name} has no test in {self.test_folder!r}; say where they are"
            )
        return self

    def is_test(self, path: str) -> bool:
        return PurePosixPath(path).is_relative_to(self.test_folder)

    def is_protected(self, path: str) -> bool:
        """Whether the file judges or decides how to, so that a candidate's version is left out."""
        pure = PurePosixPath(path)
        return self.is_test(path) or pure.name in STEERS_TESTS or pure.suffix == ".pth"

    @property
    def sources(self) -> dict[str, str]:
        """The Python files that a task may be about."""
        return {
            path: text
            for path, text in self.files.items()
            if path.endswith(".py") and not self.is_protected(path) and path != "setup.py"
        }

    def graded_files(self, candidate: Mapping[str, str]) -> dict[str, str]:
        """The candidate's own files, and the project's own version of all that judges them. A file
        of the candidate's that stands in the way of one of those is left out."""
        judging = {p: text for p, text in self.files.items() if self.is_protected(p)}
        folders = {str(parent) for path in judging for parent in PurePosixPath(path).parents}
        own = {p: text for p, text in candidate.items() if not self.is_protected(p)}
        in_the_way = {
            p
            for p in own
            if p in folders or any(str(parent) in judging for parent in PurePosixPath(p).parents)
        }
        return {p: text for p, text in own.items() if p not in in_the_way} | judging


def check_path(path: str) -> None:
    """ValueError for a path that is not relative, plain and below the root."""
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or str(pure) != path or "\0" in path or path == ".":
        raise ValueError(f"a project's path is relative, without '..', got {path!r}")


@cache
def builtin_projects() -> dict[str, Project]:
    """The projects that come with the package, by name."""
    return {project.name: project for project in definitions_in(FOLDER, Project)}


def files_of_git(folder: Path, revision: str = "HEAD") -> dict[str, str]:
    """The files of a commit. Nothing of the repository runs: `git archive` reads objects only.
    ConfigError for a revision or a folder that is none, and one that takes too long to read."""
    if not REVISION.fullmatch(revision):
        raise ConfigError(
            f"a revision is a branch, a tag or a commit, such as main, v1.2 or HEAD~1; got "
            f"{revision!r}"
        )
    command = ["git", "-C", str(folder), "archive", "--format=tar", revision]
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=GIT_S)
    except subprocess.TimeoutExpired:
        raise ConfigError(f"cannot read {revision} of {folder} within {GIT_S:g} s") from None
    except FileNotFoundError:
        raise ConfigError(f"cannot read {folder}: no program git is installed") from None
    if b"not a valid object name" in done.stderr:
        raise ConfigError(f"{folder} has no revision {revision!r}")
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()
        raise ConfigError(f"cannot read {revision} of {folder}: {said}")
    return text_files(done.stdout)


def sdist_files(tar: bytes, where: str) -> dict[str, str]:
    """Text files below the one top folder of a source distribution. ConfigError naming `where`."""
    files = text_files(tar)
    tops = {path.partition("/")[0] for path in files}
    if len(tops) != 1:
        raise ConfigError(f"{where} is no source distribution: its top folders are {tops}")
    return {path.partition("/")[2]: text for path, text in files.items()}


def text_files(tar: bytes) -> dict[str, str]:
    """Regular UTF-8 files of an archive; nothing is written anywhere. ConfigError when too big."""
    found: dict[str, str] = {}
    total = 0
    with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
        for member in archive:
            path = member.name.removeprefix("./")
            if not member.isreg() or member.size > MAX_FILE:
                continue
            file = archive.extractfile(member)
            try:
                check_path(path)
                found[path] = file.read().decode() if file else ""
            except ValueError:  # also a file that is not UTF-8
                continue
            total += member.size
            if len(found) > MAX_FILES or total > MAX_TOTAL:
                raise ConfigError(f"a project has at most {MAX_FILES} files, {MAX_TOTAL} bytes")
    return found
