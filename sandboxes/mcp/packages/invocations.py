"""Commands that download a package and run a program of it, as people write them: `uvx`, `npx` and
the like. Read here, never run."""

import re
from collections.abc import Sequence
from pathlib import PurePath
from typing import NamedTuple

from records.errors import ConfigError
from sandboxes.core.python_env import VERSION
from sandboxes.mcp.packages.requested import PackageKind, ServerPackages

PYTHON_REQUIREMENT = re.compile(
    r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)"
    r"(?P<extras>\[[A-Za-z0-9._, -]+\])?"
    r"(?:@(?P<at>[A-Za-z0-9.!+_-]+)| *(?P<bounds>[=<>~!]=?[=<>~!0-9A-Za-z.*+, _-]+))?"
)
NODE_REQUIREMENT = re.compile(
    r"(?P<name>(?:@[A-Za-z0-9][\w.~-]*/)?[A-Za-z0-9][\w.~-]*)(?:@(?P<at>[^\s/:@]+))?", re.ASCII
)


class PackageRunner(NamedTuple):
    """One such command and the options of it that are understood."""

    kind: PackageKind
    package: frozenset[str]
    """Options whose value is the package that the program is of."""

    beside: frozenset[str] = frozenset()
    """Options whose value is packages that are installed with it."""

    without_effect: frozenset[str] = frozenset()
    """Options without a value that change nothing here."""


_UVX = PackageRunner(
    "python",
    frozenset({"--from"}),
    frozenset({"--with", "-w"}),
    frozenset(
        {
            *("-q", "--quiet", "-v", "--verbose", "--isolated", "--refresh", "-U", "--upgrade"),
            *("-n", "--no-cache", "--no-progress", "--no-config", "--no-env-file"),
            *("--native-tls", "--system-certs", "--no-build", "--no-python-downloads"),
        }
    ),
)
_PIPX = PackageRunner(
    "python",
    frozenset({"--spec"}),
    frozenset({"--with"}),
    frozenset({"--no-cache", "-q", "--quiet", "-v", "--verbose"}),
)
_NPX = PackageRunner(
    "node",
    frozenset({"-p", "--package"}),
    without_effect=frozenset(
        {"-y", "--yes", "-q", "--quiet", "-s", "--silent", "--prefer-online", "--ignore-existing"}
    ),
)
_BUNX = PackageRunner(
    "node",
    frozenset({"-p", "--package"}),
    without_effect=frozenset({"-y", "--silent", "--verbose"}),
)

RUNNERS: dict[tuple[str, ...], PackageRunner] = {
    ("uvx",): _UVX,
    ("uv", "tool", "run"): _UVX,
    ("pipx", "run"): _PIPX,
    ("npx",): _NPX,
    ("npm", "exec"): _NPX,
    ("npm", "x"): _NPX,
    ("bunx",): _BUNX,
    ("bun", "x"): _BUNX,
    ("pnpm", "dlx"): _NPX,
}

PYTHON_OPTIONS = ("-p", "--python")
INDEX_OPTIONS = (
    *("-i", "--index", "--index-url", "--extra-index-url", "--default-index", "-f"),
    *("--find-links", "--registry"),
)


class Invocation(NamedTuple):
    """What such a command comes to: a program with its arguments, and the packages it is of."""

    program: str
    arguments: tuple[str, ...]
    packages: ServerPackages


def invocation_of(words: Sequence[str]) -> Invocation | None:
    """The packages and the program of a command; None for a command that downloads nothing.

    ConfigError, naming it and saying what to do, for an option that is not understood, for a
    package that comes from no index, and where no program is named.
    """
    words = without_shell(words)
    named = PurePath(words[0]).name.lower() if words else ""
    first = re.sub(r"\.(exe|cmd|bat)$", "", named)
    for length in (1, 2, 3):
        name = (first, *words[1:length])
        if (runner := RUNNERS.get(name)) is not None:
            return _read(" ".join(name), runner, words[length:])
    return None


def without_shell(words: Sequence[str]) -> Sequence[str]:
    """The command without `cmd /c`, through which Windows starts a script."""
    shell = [word.lower() for word in words[:2]]
    return words[2:] if shell in (["cmd", "/c"], ["cmd.exe", "/c"]) else words


def _read(called: str, runner: PackageRunner, words: Sequence[str]) -> Invocation:
    requirement = _python_requirement if runner.kind == "python" else _node_requirement
    packages: list[str] = []
    beside: list[str] = []
    left = list(words)
    while left and left[0].startswith("-"):
        option, equals, value = left.pop(0).partition("=")
        if option == "--":
            break
        if option in runner.without_effect and not equals:
            continue
        takes = option in runner.package | runner.beside
        if not takes and not (runner.kind == "python" and option in PYTHON_OPTIONS):
            raise ConfigError(f"{called}: {_not_understood(option, runner)}")
        if not equals:
            if not left:
                raise ConfigError(f"{called}: option {option} needs a value")
            value = left.pop(0)
        if not takes:
            _check_python(called, option, value)
        elif option in runner.package:
            packages.append(requirement(called, value))
        else:
            given = (one.strip() for one in value.split(","))
            beside += [requirement(called, one) for one in given if one]
    if not left:
        raise ConfigError(f"{called}: no package or program is named")
    program, *arguments = left
    own = not packages
    if own:
        packages = [requirement(called, program)]
    made = ServerPackages(kind=runner.kind, requirements=(*packages, *beside), own_program=own)
    return Invocation(_unscoped(made.main) if own else program, tuple(arguments), made)


def _not_understood(option: str, runner: PackageRunner) -> str:
    if option in INDEX_OPTIONS:
        manager = "pip" if runner.kind == "python" else "npm"
        return (
            f"option {option} names an index, and packages come only from those of your own "
            f"{manager} settings; set it there (`{manager} config set`) and leave the option out"
        )
    understood = sorted(runner.package | runner.beside | runner.without_effect)
    return (
        f"option {option} is not understood; understood: {', '.join(understood)}. Leave it out, or "
        "install the package beforehand and give its own program as the command"
    )


def _check_python(called: str, option: str, value: str) -> None:
    version = value.lower().removeprefix("cpython").removeprefix("python").lstrip("@-")
    if version.split(".")[:2] not in (VERSION.split("."), VERSION.split(".")[:1], [""]):
        raise ConfigError(
            f"{called}: option {option} {value} asks for another Python; servers run on Python "
            f"{VERSION}, which also runs this program: leave the option out, or run this program "
            f"with Python {value}"
        )


def _python_requirement(called: str, text: str) -> str:
    match = _matched(called, text, PYTHON_REQUIREMENT, "PACKAGE==1.2.3 or PACKAGE@1.2.3")
    version = "" if match["at"] in (None, "latest") else f"=={match['at']}"
    return f"{match['name']}{match['extras'] or ''}{match['bounds'] or version}".replace(" ", "")


def _node_requirement(called: str, text: str) -> str:
    return _matched(called, text, NODE_REQUIREMENT, "PACKAGE@1.2.3 or @SCOPE/PACKAGE@1.2.3")[0]


def _matched(called: str, text: str, pattern: re.Pattern[str], form: str) -> re.Match[str]:
    match = pattern.fullmatch(text.strip())
    if match is None:
        raise ConfigError(
            f"{called}: {without_password(text)!r} names no package of an index; one is written "
            f"{form}. Of a repository, an address or a folder, install it beforehand and give its "
            "own program as the command"
        )
    return match


def without_password(text: str) -> str:
    """The text without what stands before the @ of an address in it."""
    return re.sub(r"(://)[^/@\s]*@", r"\1", text)


def _unscoped(package: str) -> str:
    return package.rpartition("/")[2]
