"""Commands about code as an environment: code add, check."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cyclopts import App

from flows.cli.shared.options import Json, License
from flows.cli.shared.output import print_rows, say
from records.errors import ConfigError

if TYPE_CHECKING:
    from sandboxes.code.projects import Project


def register(app: App) -> None:
    code = App(name="code", help="Repositories and packages of your own for tasks on code.")
    code.command(add)
    code.command(check)
    app.command(code)


def add(
    source: str,
    /,
    *,
    out: Path,
    name: str | None = None,
    revision: str = "HEAD",
    tests: str | None = None,
    path: list[str] | None = None,
    runner: Literal["pytest", "unittest"] = "pytest",
    requires: list[str] | None = None,
    license_: License = None,
    heldout: bool = False,
    index_url: str | None = None,
    proxy: str | None = None,
    json_: Json = False,
) -> None:
    """Make a definition of a real project, for `code` in a run's config, and prove it.

    The tests must pass in a sandbox without network, twice, and notice a planted bug; else nothing
    is written. What they need is installed from wheels into a folder beside FILE, in a sandbox
    with network that runs no code of any package and is shown nothing of yours.

    Parameters
    ----------
    source
        NAME==VERSION of a package index, the folder or URL of a git repository, or a .tar.gz.
    out
        The definition to write, a .yaml file. Never overwrites.
    name
        Of the project; else it takes the source's.
    revision
        Of a git repository: a branch, a tag or a commit.
    tests
        The folder, or the file, of its tests; else it is guessed.
    path
        A folder that its code is imported from, such as src; else it is guessed.
    runner
        What runs the tests.
    requires
        A requirement of the tests beside what the project declares, such as hypothesis<7.
    license_
        SPDX id of the files; else what the package says, or unknown.
    heldout
        Keep its tasks out of training.
    index_url
        The package index; else pip's own default.
    proxy
        An HTTP proxy on the way to it.
    json_
        Print a JSON object.
    """
    import asyncio
    import shutil

    from flows.cli.commands.sandbox import check_available
    from sandboxes.code.sources import project_from, write_definition

    if out.suffix not in (".yaml", ".yml"):
        raise ConfigError(f"{out}: a definition ends in .yaml")
    into = out.absolute().with_suffix(".packages")
    if taken := [path for path in (out, into) if path.exists()]:
        raise ConfigError(f"{taken[0]} exists already; choose another name")
    check_available()
    given = {"test_folder": tests, "paths": path, "license": license_}
    settings: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    if heldout:
        settings["split"] = "heldout_domain"
    settings |= {"runner": runner, "requires": requires or (), "index": _index(index_url, proxy)}
    try:
        project = asyncio.run(
            project_from(source, into=into, name=name, revision=revision, **settings)
        )
        _prove(project, json_=json_)
        write_definition(project, out)
    except BaseException:
        shutil.rmtree(into, ignore_errors=True)
        raise
    say(f'wrote {out}; use it in a run: code = ["{out}"]')


def check(file: Path, /, *, json_: Json = False) -> None:
    """Prove a definition of a repository: its tests pass, twice, and notice a planted bug.

    Parameters
    ----------
    file
        The definition (.yaml).
    json_
        Print a JSON object.
    """
    from flows.cli.commands.sandbox import check_available
    from sandboxes.code.sources import load_project

    project = load_project(file)
    check_available()
    _prove(project, json_=json_)


def _index(url: str | None, proxy: str | None) -> Any:
    from pydantic import ValidationError

    from sandboxes.code.packages import PackageIndex

    try:
        return PackageIndex(url=url, proxy=proxy)
    except ValidationError as error:
        raise ConfigError(f"--index-url, --proxy: {error.errors()[0]['msg']}") from error


def _prove(project: "Project", *, json_: bool) -> None:
    """Print what its tests do. ItemError where no task can be made of it."""
    import asyncio

    from sandboxes.code.sources import prove

    found = asyncio.run(prove(project))
    bug, baseline = found.bug, found.baseline
    row = {
        "project": project.name,
        "files": len(project.files),
        "sources": len(project.sources),
        "tests": len(baseline.tests) + len(baseline.others),
        **found.counts,
        "green": baseline.green,
        "bug": f"{bug.mutation.path}: {bug.mutation.operator}",
        "noticed_by": len(bug.fail_to_pass),
    }
    print_rows(tuple(row), [list(row.values())], json_=json_)
    for test, outcome in baseline.others.items():
        status = "unsteady" if test in baseline.unsteady else outcome.status
        say(f"judges nothing, {status}: {test}")
