"""The Python of a sandbox: the running interpreter and the packages beside it, at fixed paths.

Inside they stand at /opt/python and /opt/env wherever they are outside, so that no output tells
one checkout from another, and a virtual environment under a closed home works as it is.
"""

import configparser
import re
import sys
import sysconfig
from collections.abc import Iterable
from functools import cache
from importlib.metadata import Distribution, distributions
from pathlib import Path

from records.errors import ConfigError
from sandboxes.core.template import Bind

BASE = "/opt/python"
ENVIRONMENT = "/opt/env"
LIBRARIES = "/opt/lib"

VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
PYTHON = f"{ENVIRONMENT}/bin/python"
"""The interpreter with the packages, inside."""


def base_python() -> str:
    """The bare interpreter's path inside; it runs the agent."""
    prefix = Path(sys.base_prefix)
    return f"/usr/bin/python{VERSION}" if prefix == Path("/usr") else f"{BASE}/bin/python{VERSION}"


def host_python() -> str:
    """The bare interpreter's path outside, also where the running one was started by a name that
    its user cannot look up."""
    return f"{sys.base_prefix}/bin/python{VERSION}"


def base_binds() -> tuple[Bind, ...]:
    """What the bare interpreter needs, beside /usr."""
    if sys.base_prefix == "/usr":
        return ()
    binds = (Bind(source=sys.base_prefix, target=BASE),)
    # A shared libpython is found by an absolute path outside; it alone goes on the search path,
    # since the rest of that folder could shadow libraries of the system's programs.
    name, folder = sysconfig.get_config_var("INSTSONAME"), sysconfig.get_config_var("LIBDIR")
    if sysconfig.get_config_var("Py_ENABLE_SHARED") and (library := Path(folder) / name).exists():
        binds += (Bind(source=str(library), target=f"{LIBRARIES}/{name}"),)
    return binds


def base_env() -> dict[str, str]:
    shared = any(bind.target.startswith(LIBRARIES) for bind in base_binds())
    return {"LD_LIBRARY_PATH": LIBRARIES} if shared else {}


def site_packages(venv: Path | None) -> Path:
    """The folder of installed packages of a virtual environment, or of the running Python."""
    if venv is None:
        return Path(sysconfig.get_paths()["purelib"])
    folder = venv / "lib" / f"python{VERSION}" / "site-packages"
    if not folder.is_dir():
        raise ConfigError(
            f"{venv} is no virtual environment of Python {VERSION} (no {folder}); "
            f"make one with python{VERSION} -m venv"
        )
    return folder


def packages_inside() -> str:
    return f"{ENVIRONMENT}/lib/python{VERSION}/site-packages"


def environment_binds(packages: Path, entries: Iterable[str] | None = None) -> tuple[Bind, ...]:
    """The installed packages, or of their folder these entries alone. The interpreter itself is
    shown to every sandbox (`base_binds`)."""
    if entries is None:
        return (Bind(source=str(packages), target=packages_inside()),)
    inside = packages_inside()
    return tuple(Bind(source=str(packages / e), target=f"{inside}/{e}") for e in entries)


@cache
def owner_of(packages: Path, command: str) -> str | None:
    """The distribution that has this console script, or for a name with dots or none of these the
    module of this name; None where none has."""
    top = command.partition(".")[0]
    for dist in distributions(path=[str(packages)]):
        if any(e.group == "console_scripts" and e.name == command for e in dist.entry_points):
            return dist.name
    for dist in distributions(path=[str(packages)]):
        if {top, f"{top}.py"} & entries_of(dist):
            return dist.name
    return None


@cache
def needed_by(packages: Path, distribution: str) -> tuple[str, ...]:
    """The entries of the folder that a distribution has, and all that it requires as far as it is
    installed. A requirement that depends on the machine counts as one."""
    installed = {plain(dist.name): dist for dist in distributions(path=[str(packages)])}
    waiting, seen, found = [(plain(distribution), "")], set[tuple[str, str]](), set[str]()
    while waiting:
        name, extra = wanted = waiting.pop()
        if wanted in seen or name not in installed:
            continue
        seen.add(wanted)
        found |= entries_of(installed[name])
        for line in installed[name].requires or ():
            if (match := REQUIREMENT.fullmatch(line.strip())) is None:
                continue
            needed, extras, marker = match.groups(default="")
            only = EXTRA.search(marker)
            if only is None or plain(only[1]) == extra:
                waiting.append((plain(needed), ""))
                waiting += [(plain(needed), plain(e)) for e in extras.split(",") if e]
    return tuple(sorted(found))


REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)\s*(?:\[([^\]]*)\])?[^;]*(?:;(.*))?", re.DOTALL)
EXTRA = re.compile(r"extra\s*==\s*['\"]([^'\"]+)")


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


def entries_of(dist: Distribution) -> set[str]:
    """Entries of the folder of packages, not of folders beside it; a cache has those of all."""
    tops = {file.parts[0] for file in dist.files or ()}
    return tops - {"..", "__pycache__", "/"}


def environment_files() -> dict[str, str]:
    """What makes /opt/env a virtual environment, so that .pth files work as they do outside."""
    home = str(Path(base_python()).parent)
    config = f"home = {home}\ninclude-system-site-packages = false\nversion = {VERSION}\n"
    return {f"{ENVIRONMENT}/pyvenv.cfg": config}


def environment_links() -> dict[str, str]:
    return {PYTHON: base_python(), f"{PYTHON}3": base_python()}


@cache
def console_scripts(packages: Path) -> dict[str, str]:
    """Command -> `module:function`, read from metadata files; nothing is imported."""
    found: dict[str, str] = {}
    for file in sorted(packages.glob("*.dist-info/entry_points.txt")):
        parser = configparser.ConfigParser(delimiters=("=",), interpolation=None)
        parser.optionxform = str  # type: ignore[assignment]  # names keep their case
        parser.read_string(file.read_text(encoding="utf-8"))
        if parser.has_section("console_scripts"):
            found |= dict(parser["console_scripts"])
    return found


def script_argv(command: str, packages: Path) -> list[str] | None:
    """How to run an installed command inside, where its script and shebang do not exist."""
    target = console_scripts(packages).get(command)
    return None if target is None else [PYTHON, "-c", _script(command, target)]


def environment_programs(packages: Path) -> dict[str, str]:
    """Every installed command as a file of /opt/env/bin, which is empty otherwise: scripts of the
    outside name an interpreter that is not there."""
    found = console_scripts(packages).items()
    return {
        f"{ENVIRONMENT}/bin/{command}": f"#!{PYTHON}\n{_script(command, target)}\n"
        for command, target in found
        if "/" not in command and not command.startswith("python")
    }


def _script(command: str, target: str) -> str:
    module, _, function = target.partition("[")[0].strip().partition(":")
    run = f"import sys; from {module} import {function.split('.')[0]} as f; "
    call = "f" + "".join(f".{part}" for part in function.split(".")[1:])
    return f"{run}sys.argv[0] = {command!r}; sys.exit({call}())"
