"""Domains as a run names them, known by their tools before they are loaded.

To load a domain with its tools takes some 25 ms, and a run may name hundreds and need a few at a
time. So the package has an index of its own files: of each its digest, and the ids and names that
loading it gives. It is asked only about a file that is as it was; any other is loaded at once.
`make index` writes it, and a test holds it fresh.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Self

from records.errors import ConfigError
from tool_specs.domains.catalogue import domain_id, tool_ids
from tool_specs.domains.domain import Domain, built_domain
from tool_specs.domains.loading import file_bytes
from tool_specs.domains.taxonomy import files_named, taxonomy_files

INDEX = Path(__file__).parent / "index.json"


@dataclass(frozen=True, slots=True)
class KnownDomain:
    """What a stage asks of a domain before it uses it; `load` gives the domain itself."""

    name: str
    domain_id: str
    tools: Mapping[str, str]
    """tool_id by name, in the order of the file."""
    has_user_tools: bool
    path: str
    content: bytes = field(repr=False)
    """Of the file when it was looked at, so that what is loaded later is what was named."""

    @classmethod
    def of(cls, path: Path) -> Self:
        """Raises ConfigError for a file that is no domain, unless the index vouches for it."""
        content = file_bytes(path)
        known = _index().get(path.stem, {})
        if known.get("file") != _digest(content):
            known = _entry(built_domain(str(path), content), content)
        return cls(
            known["name"],
            known["domain_id"],
            known["tools"],
            known["has_user_tools"],
            str(path),
            content,
        )

    def load(self) -> Domain:
        return built_domain(self.path, self.content)


class KnownDomains(Mapping[str, Domain]):
    """Domains by domain_id, each loaded when it is asked for."""

    def __init__(self, known: Iterable[KnownDomain]) -> None:
        self._known = {domain.domain_id: domain for domain in known}

    def __getitem__(self, domain_id: str) -> Domain:
        return self._known[domain_id].load()

    def __contains__(self, domain_id: object) -> bool:  # the default would load the domain
        return domain_id in self._known

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


def known_domains(names: Iterable[str]) -> list[KnownDomain]:
    """The domains that entries of a run's `domains` mean: names, `all`, patterns such as
    `smart_home/*`, or paths of files. `all` and patterns mean those that have tools.

    Raises ConfigError for a name that nothing has, for one whose domain has no tools yet, and for
    two domains of one name.
    """
    found: dict[str, KnownDomain] = {}
    for name in names:
        for domain in _meant(name):
            if found.setdefault(domain.name, domain).path != domain.path:
                raise ConfigError(f"domains: {domain.name!r} is given twice")
    return list(found.values())


def _meant(name: str) -> list[KnownDomain]:
    files = files_named("*" if name == "all" else name)
    domains = [KnownDomain.of(path) for path in files.values()]
    with_tools = [domain for domain in domains if domain.tools]
    if name.endswith((".yaml", ".yml")) or with_tools:
        return with_tools or domains  # whoever wrote the file may mean one without tools
    raise ConfigError(
        f"domains: {name!r} has no tools yet; `synth domain write '{name}'` has a model write "
        "them, `synth domain list` says which domains have some"
    )


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _entry(domain: Domain, content: bytes) -> dict[str, Any]:
    return {
        "file": _digest(content),
        "name": domain.name,
        "domain_id": domain_id(domain),
        "tools": dict(zip(domain.programs, tool_ids(domain), strict=True)),
        "has_user_tools": bool(domain.file.user_tools),
    }


@cache
def _index() -> dict[str, Any]:
    return json.loads(INDEX.read_bytes())


def index_text() -> str:
    """The index of the package's files as they are, a line a domain. Loads every one."""
    files = {name: (path, file_bytes(path)) for name, path in taxonomy_files().items()}
    lines = [
        f'"{name}": {json.dumps(_entry(built_domain(str(path), content), content))}'
        for name, (path, content) in files.items()
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    INDEX.write_text(index_text())
