"""The hand-written application domains, by category: what synthetic tools are evolved from.

`taxonomy/<category>/<domain>.yaml` holds domains without tools; the domains of `domains/`, whose
tools are hand-written too, belong to it as well.
"""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from records.errors import ConfigError
from tool_specs.domains.domain import BUILT_IN, Domain, load_domain

TAXONOMY = Path(__file__).parent / "taxonomy"

EXAMPLE = Path(__file__).parent / "new_domain.yaml"
"""What a user's own domain starts from, `DOMAIN_NAME` standing for its name."""


def taxonomy_files() -> dict[str, Path]:
    """Path of every domain file of the package, by the domain's name, in order of names."""
    files = [*TAXONOMY.glob("*/*.yaml"), *BUILT_IN.glob("*.yaml")]
    return {path.stem: path for path in sorted(files, key=lambda path: path.stem)}


def files_named(name: str) -> dict[str, Path]:
    """The files that a name, a pattern such as `smart_home/*` or a path of a .yaml file means, by
    the domains' names. ConfigError where the taxonomy has none."""
    if name.endswith((".yaml", ".yml")):
        return {Path(name).stem: Path(name)}
    known = taxonomy_files()
    if name in known:
        return {name: known[name]}
    if found := {n: path for n, path in known.items() if _is_meant(name, n, path)}:
        return found
    raise _unknown(name, known)


def _is_meant(pattern: str, name: str, path: Path) -> bool:
    return fnmatchcase(name, pattern) or fnmatchcase(f"{path.parent.name}/{name}", pattern)


def load_taxonomy(names: Iterable[str | Path] | None = None) -> list[Domain]:
    """Domains by name or by path of a .yaml file; the whole taxonomy without `names`."""
    known = taxonomy_files()
    return [load_domain(_path_of(name, known)) for name in (known if names is None else names)]


def _path_of(name: str | Path, known: dict[str, Path]) -> Path:
    if isinstance(name, Path):
        return name
    if name.endswith((".yaml", ".yml")):
        return Path(name)
    if name not in known:
        raise _unknown(name, known)
    return known[name]


def _unknown(name: str, known: dict[str, Path]) -> ConfigError:
    near = ", ".join(n for n in known if n[:3] == name[:3]) or ", ".join(list(known)[:10])
    return ConfigError(
        f"domains: the taxonomy has no {name!r} ({len(known)} domains, such as {near}); `synth "
        "domain list` names them; a .yaml file may be given, too"
    )
