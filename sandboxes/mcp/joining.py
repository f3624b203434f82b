"""Joined servers: two or three servers, or servers and a domain, in one definition.

    joins: [loans.yaml, crm.yaml]

Parts are definitions by their path, relative to the file, built-in servers by name, and domains as
`domain:NAME` or `domain:PATH`. The clock of all is the domain's, else the latest of the parts'.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from records.config import Config
from records.errors import ConfigError
from sandboxes.core.workspace_files import WorkspaceFiles
from sandboxes.mcp.domains.domain_server import instructions_of
from sandboxes.mcp.servers import Fixture, ServerConfig, ServerGoal, builtin_servers
from tool_specs.domains.catalogue import LICENSE, domain_id, tool_ids
from tool_specs.domains.domain import Domain
from tool_specs.domains.joining import MOST_PARTS
from tool_specs.domains.known import known_domains
from tool_specs.domains.loading import checked, read_yaml
from tool_specs.importing.licences import spdx_of

JOINS = "joins"
"""The key that a definition of a joined server has in place of `command`."""

DOMAIN = "domain:"
DEFAULT = "default"


class DomainPart(ServerConfig):
    """A domain as a part. It runs in this process, and its state is its rows."""

    NOT_IDENTITY: ClassVar[frozenset[str]] = ServerConfig.NOT_IDENTITY | {"path"}

    command: tuple[str, ...] = ()
    path: str
    domain_id: str
    tool_ids: tuple[str, ...]

    def load(self) -> Domain:
        """ConfigError where the file is another one than when the run began."""
        [known] = known_domains([self.path])
        if (known.domain_id, tuple(known.tools.values())) != (self.domain_id, self.tool_ids):
            raise ConfigError(f"{self.path}: domain {self.name} was edited since the run began")
        return known.load()


class JoinedServerConfig(ServerConfig):
    """Several servers as one. What may be written, reached and asked the parts say, each for
    itself; goals and slots are its own."""

    command: tuple[str, ...] = ()
    parts: tuple[ServerConfig, ...] = Field(min_length=2, max_length=MOST_PARTS)

    @property
    def reaches_out(self) -> bool:
        return any(part.reaches_out for part in self.parts)

    @property
    def may_write(self) -> bool:
        return any(part.may_write for part in self.parts)

    def part(self, name: str) -> ServerConfig:
        """KeyError for a name that no part has."""
        return {part.name: part for part in self.parts}[name]

    def with_fixtures(
        self, wanted: Mapping[str, Any] | None
    ) -> list[tuple[ServerConfig, dict[str, Any]]]:
        """Each part with the fixture that it starts in, what it was filled with if it was, and the
        seed that all are given. ConfigError for an unknown choice."""
        name = (wanted or {}).get("fixture", DEFAULT)
        choices = _choices(self.parts)
        if name not in choices:
            known = ", ".join(choices)
            raise ConfigError(f"server {self.name} has no fixture {name!r}; it has: {known}")
        seed = {key: value for key, value in (wanted or {}).items() if key == "seed"}
        start = self.start if wanted is None else wanted.get("start", "")
        if start and not any(start in part.starts for part in self.parts):
            raise ConfigError(
                f"server {self.name} has no start {start!r}: the dataset lacks it; "
                "the run's own command makes it again"
            )
        return [
            (
                part,
                {"fixture": chosen, **({"start": start} if start in part.starts else {}), **seed},
            )
            for part, chosen in zip(self.parts, choices[name], strict=True)
        ]

    def with_starts(self, starts: Mapping[str, WorkspaceFiles]) -> "JoinedServerConfig":
        """The same, each part with what is its own of what the whole was filled with."""
        parts = tuple(
            part.model_copy(
                update={
                    "starts": {
                        item: own
                        for item, files in starts.items()
                        if (own := _of_part(part.name, files))
                    }
                }
            )
            for part in self.parts
        )
        return self.model_copy(update={"parts": parts})


class _Definition(Config):
    """What the file of a joined server may say."""

    joins: tuple[str, ...] = Field(min_length=2, max_length=MOST_PARTS)
    name: str
    title: str = ""
    description: str = ""
    slots: dict[str, tuple[str | int, ...]] = Field(default_factory=dict)
    goals: tuple[ServerGoal, ...] = ()


def programs_of(config: ServerConfig) -> Sequence[ServerConfig]:
    """The servers that are programs, each for a sandbox of its own: the server, or its parts."""
    if not isinstance(config, JoinedServerConfig):
        return (config,)
    return [part for part in config.parts if not isinstance(part, DomainPart)]


def part_of(config: ServerConfig, tool: Mapping[str, Any]) -> ServerConfig:
    """The part that a tool, as a row, belongs to; the server itself where it has no parts."""
    if not isinstance(config, JoinedServerConfig):
        return config
    return config.part(tool["annotations"]["part"])


def files_joined(path: Path) -> Iterator[Path]:
    """The files that a definition joins; none where it is no joined server."""
    joins = _joins(path)
    for entry in joins if isinstance(joins, list) else ():
        if isinstance(entry, str) and entry.endswith((".yaml", ".yml")):
            yield path.parent / entry.removeprefix(DOMAIN)


def joined_server(
    given: Mapping[str, Any], path: Path, load: Callable[[Path], ServerConfig]
) -> JoinedServerConfig:
    """The definition at `path`, of which `given` is the content, with its parts; `load` reads the
    definition of one. ConfigError naming the file and what is wrong."""
    definition = checked(_Definition, given, origin=str(path))
    try:
        parts = [_part(entry, path.parent, load) for entry in definition.joins]
        _check(parts)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error
    domains = [part for part in parts if isinstance(part, DomainPart)]
    clock = max(part.clock for part in domains or parts)
    parts = [p.model_copy(update={"clock": clock, "goals": (), "slots": {}}) for p in parts]
    titles = [part.title or part.name.replace("_", " ") for part in parts]
    told = zip(titles, parts, strict=True)
    whole = {
        "name": definition.name,
        "title": definition.title or " and ".join(titles),
        "description": definition.description
        or "\n".join(f"{title}: {part.description}" for title, part in told if part.description),
        "category": parts[0].category,
        "parts": tuple(parts),
        "fixtures": {name: Fixture() for name in _choices(parts)},
        "probes": {entity_of(p.name, entity): v for p in parts for entity, v in p.probes.items()},
        "clock": clock,
        "license": spdx_of(" AND ".join(sorted({part.license for part in parts}))),
        "split": max((part.split for part in parts), key=lambda split: split != "train"),
        "slots": definition.slots,
        "goals": definition.goals,
    }
    return checked(JoinedServerConfig, whole, origin=str(path))


def entity_of(part: str, entity: str) -> str:
    """The name of a part's entity in the state of the whole."""
    return f"{part}/{entity}"


def with_starts(config: ServerConfig, starts: Mapping[str, WorkspaceFiles]) -> ServerConfig:
    """The server with what runs have filled it with, by id."""
    if isinstance(config, JoinedServerConfig):
        return config.with_starts(starts)
    return config.model_copy(update={"starts": dict(starts)})


def _of_part(name: str, files: WorkspaceFiles) -> WorkspaceFiles:
    """The part's own among the files of all, of which each stands under its part's name."""
    prefix = entity_of(name, "")
    return {p.removeprefix(prefix): text for p, text in files.items() if p.startswith(prefix)}


def _part(entry: str, folder: Path, load: Callable[[Path], ServerConfig]) -> ServerConfig:
    if entry.startswith(DOMAIN):
        return _domain(entry.removeprefix(DOMAIN), folder)
    if entry.endswith((".yaml", ".yml")):
        if _joins(folder / entry) is not None:
            raise ConfigError(f"joins names {entry}, which is a joined server; name its parts")
        return load(folder / entry)
    builtin = builtin_servers()
    if entry not in builtin:
        raise ConfigError(
            f"joins names {entry!r}; allowed: the path of a server definition (.yaml), "
            f"{', '.join(builtin)}, or {DOMAIN}NAME"
        )
    return builtin[entry]


def _joins(path: Path) -> Any:
    """What the definition says under `joins`, unchecked."""
    given = read_yaml(path)
    return given.get(JOINS) if isinstance(given, dict) else None


def _domain(name: str, folder: Path) -> DomainPart:
    is_file = name.endswith((".yaml", ".yml"))
    found = known_domains([str(folder / name) if is_file else name])
    if len(found) != 1:
        raise ConfigError(f"joins names {DOMAIN}{name}, which means {len(found)} domains; name one")
    domain = found[0].load()
    if domain.has_time:
        raise ConfigError(
            f"joins names {DOMAIN}{name}, in which time passes; only domains without time can be "
            "joined"
        )
    return DomainPart(
        name=domain.name,
        title=domain.title,
        description=instructions_of(domain),
        category=domain.file.category,
        path=found[0].path,
        domain_id=domain_id(domain),
        tool_ids=tuple(tool_ids(domain)),
        clock=domain.now,
        license=LICENSE,
        split=domain.split,
    )


def _check(parts: Sequence[ServerConfig]) -> None:
    names = [part.name for part in parts]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise ConfigError(f"two parts are called {', '.join(repeated)}; give one another `name`")
    domains = [part.name for part in parts if isinstance(part, DomainPart)]
    if len(domains) > 1:
        raise ConfigError(
            f"joins names the domains {', '.join(domains)}; make one of them first with "
            "`synth domain join`"
        )


def _choices(parts: Sequence[ServerConfig]) -> dict[str, tuple[str, ...]]:
    """Name of a fixture of the whole -> that of each part. Only other than default ones are
    named."""
    return {_choice(parts, chosen): chosen for chosen in product(*(p.fixtures for p in parts))}


def _choice(parts: Sequence[ServerConfig], chosen: Sequence[str]) -> str:
    named = zip(parts, chosen, strict=True)
    return ", ".join(f"{p.name}={name}" for p, name in named if name != DEFAULT) or DEFAULT
