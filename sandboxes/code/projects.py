"""A project that code tasks are about: source files, a test suite, and how the suite is run.

Projects that come with this package are data: `repositories/*.yaml`, files and all. Others are
read from a git repository or a source distribution (`sandboxes.code.sources`); of those only text
files count.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path, PurePosixPath
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from records.config import Config
from tool_specs.domains.loading import definitions_in

FOLDER = Path(__file__).parent / "repositories"

MAX_FILE, MAX_FILES, MAX_TOTAL = 200_000, 2_000, 8_000_000
"""Bounds of a project's text files: bytes of one, their number, bytes of all."""

MAX_DEFINITION = 2 * MAX_TOTAL
"""Bytes of a definition: text that YAML must escape or indent takes more than it is long."""

MAX_PATH, MAX_NAME, MAX_DEPTH = 1_000, 255, 50
"""Bounds of a path: its bytes, those between two slashes, and the folders and the file in it."""

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
    """ValueError for a path that is not relative, plain and below the root, or too long."""
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or str(pure) != path or "\0" in path or path == ".":
        raise ValueError(f"a project's path is relative, without '..', got {path!r}")
    longest = max(len(part.encode()) for part in pure.parts)
    if len(path.encode()) > MAX_PATH or longest > MAX_NAME or len(pure.parts) > MAX_DEPTH:
        raise ValueError(
            f"a project's path has at most {MAX_PATH} bytes, {MAX_NAME} between two slashes, and "
            f"{MAX_DEPTH} names; got {path[:60]!r}..."
        )


@cache
def builtin_projects() -> dict[str, Project]:
    """The projects that come with the package, by name."""
    return {project.name: project for project in definitions_in(FOLDER, Project)}
