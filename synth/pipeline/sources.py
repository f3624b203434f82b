"""What a run is told to use, what of it can run here, and the catalogue that its stages share."""

from collections import ChainMap
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from records.errors import ConfigError
from records.reading.lookup import RowBy
from records.store.dataset import Dataset
from records.tables.schemas import Row
from sandboxes.installing.client_files import is_server_file, servers_in
from sandboxes.installing.install import installed
from sandboxes.lending.leases import LeaseSandbox, available, lease
from sandboxes.mcp.importing import source_of
from sandboxes.mcp.joined import open_live
from sandboxes.mcp.joining import programs_of, with_starts
from sandboxes.mcp.launch import check_way_out, launch_of
from sandboxes.mcp.secret_values import secret_values
from sandboxes.mcp.servers import ServerConfig, builtin_servers
from synth.catalogue.evolved_domains import Domains, EvolvedDomains, evolved_domains, is_evolved
from synth.catalogue.played_sources import PlayedSource, played_domains, sources_to_play
from synth.engine.job_config import JobConfig, Role
from synth.episode.tools import code_environments as coding
from synth.episode.tools.cassette import cassette_at
from synth.episode.tools.code_environments import code_environments
from synth.episode.tools.executors import Catalogue, OpenServer
from synth.llm.settings.config import OFFLINE
from synth.pipeline.config import RunConfig
from synth.tasks.proof.extensions import load_extensions
from synth.tasks.servers.filling import starts_in
from tool_specs.domains.known import KnownDomain, KnownDomains, known_domains
from tool_specs.importing.tool_lists import ToolListSource, decision_of, is_of

RELEASED = "released_tools"


def domains_of(config: RunConfig) -> list[KnownDomain]:
    """The domains of files that a run is told to use; ConfigError for one that cannot be read."""
    return known_domains(name for name in config.domains if not is_evolved(name))


def servers_of(config: RunConfig) -> list[ServerConfig]:
    """The MCP servers that a run is told to use, whether or not they can run here."""
    builtin = builtin_servers()
    found: dict[str, ServerConfig] = {}
    for name in config.servers:
        if name == "all":
            found |= builtin
        elif name in builtin:
            found[name] = builtin[name]
        elif is_server_file(name):
            found |= {server.name: server for server in servers_in(Path(name))}
        else:
            raise ConfigError(
                f"servers names {name!r}; allowed: all, {', '.join(builtin)}, or the path of a "
                "server definition (.yaml) or of a file with mcpServers (.json)"
            )
    return list(found.values())


async def install_servers(config: RunConfig, *, say: Callable[[str], None]) -> None:
    """Install the packages of its servers that are not there yet, where servers can run at all.
    ConfigError where they cannot be."""
    if available() is None:
        for server in servers_of(config):
            for program in programs_of(server):
                await installed(program, say=say)


def check_sources(config: RunConfig) -> None:
    """ConfigError for a domain or server that this run names and that cannot be used here, and for
    pass rates that nothing would measure."""
    evolved = any(map(is_evolved, config.domains))
    named = evolved or config.servers or config.code or config.simulate.sources
    if not domains_of(config) and not named:
        raise ConfigError("domains, servers and code are all empty; name at least one, or all")
    if config.has_rounds and config.rollouts.attempts < 2:
        raise ConfigError(
            "difficulty.rounds and curation.band go by pass rates, which one attempt does not "
            f"measure; rollouts.attempts must be at least 2, got {config.rollouts.attempts}"
        )
    _check_played(config, named=any(map(is_evolved, config.domains)))
    _check_released(config)
    recorded = recorded_servers(config)
    for server in servers_of(config):
        if server.name not in recorded:
            why_left_out(server)
    load_extensions(config.extensions)
    code_environments(config.code)


def _check_played(config: RunConfig, *, named: bool) -> None:
    """ConfigError for a tool that a model is to play and that no domain of the run has. Those of a
    dataset (`named`) are not looked at here."""
    names = config.simulate.tools
    if isinstance(names, str) or named or config.simulate.sources:
        return
    known = {tool for domain in domains_of(config) for tool in domain.tools}
    if unknown := sorted(set(names) - known):
        raise ConfigError(
            f"simulate.tools names {', '.join(unknown)}, which no domain of the run has; allowed: "
            f"without_semantics, all, or names of tools ({', '.join(sorted(known)[:8])}, ...)"
        )


def _check_released(config: RunConfig) -> None:
    """ConfigError for a release that is of none of the run's servers. Whether the server has the
    tool is known once it is looked at."""
    servers = {server.name for server in servers_of(config)}
    for one in config.released_tools:
        if one.rpartition("/")[0] not in servers:
            raise ConfigError(
                f"{RELEASED} names {one!r}, which is no tool of the run's servers; it is written "
                f"SERVER/TOOL; servers: {', '.join(sorted(servers)) or 'none'}"
            )


def calls_tools(config: JobConfig, role: Role) -> bool:
    """Whether the role's calls of tools are to be tried before the run: the agent's, and those of a
    hosted user where users own tools. The offline model's user is no endpoint to be tried."""
    if role != "user" or not isinstance(config, RunConfig):
        return role == "agent"
    if config.roles[role].base_url == OFFLINE or not config.tasks.dual_control:
        return False
    # an evolved domain has what its file has, and which one it is the dataset knows
    evolved = any(map(is_evolved, config.domains))
    return any(domain.has_user_tools for domain in domains_of(config)) or evolved


def why_left_out(server: ServerConfig) -> str | None:
    """Why the server cannot run as things are now; None where it can. ConfigError for a command
    that does not exist, a secret that is not set and hosts that no sandbox reaches, unless the
    server is optional."""
    if available() is not None:
        return "no_sandbox"
    reason = "not_installed"
    try:
        for program in programs_of(server):
            launch_of(program)
        reason = "no_secret"
        for program in programs_of(server):
            secret_values(program.name, program.secrets)
        reason = "no_way_out"
        for program in programs_of(server):
            check_way_out(program)
    except ConfigError:
        if server.optional:
            return reason
        raise
    return None


def evolved_of(dataset: Dataset, config: RunConfig) -> EvolvedDomains:
    """The evolved domains that a run is told to use, with the tools they had when it began."""
    return evolved_domains(dataset, config.domains, run_id=config.run_id)


def played_of(dataset: Dataset, config: RunConfig) -> list[PlayedSource]:
    """The imported sources whose tools a run is told to have played."""
    served = [server.name for server in servers_of(config)]
    names = config.simulate.sources
    return sources_to_play(dataset, names, run_id=config.run_id, served=served)


def recorded_servers(config: RunConfig) -> dict[str, list[Row]]:
    """Servers that cannot run here and that the run's cassettes answer for: their tools."""
    if not config.simulate.cassettes:
        return {}
    cassette = cassette_at(config.simulate.cassettes)
    absent = (server for server in servers_of(config) if not _runs_here(server))
    return {s.name: tools for s in absent if (tools := cassette.tools_of(source_of(s)))}


def _runs_here(server: ServerConfig) -> bool:
    try:
        return why_left_out(server) is None
    except ConfigError:
        return False


def tools_served(
    rows: Iterable[Row], sources: Mapping[str, ToolListSource], released: Collection[str]
) -> set[str]:
    """Ids of the rows that stand for the tools of these sources, one row a tool.

    Of several rows of one tool a release counts most where it is this run's own, and nothing where
    it is another's; then a judge's verdict; then what was found alone.
    """
    best: dict[tuple[str, str, str], tuple[int, str]] = {}
    for row in rows:
        if row["server"] not in sources or not is_of(row, sources[row["server"]]):
            continue
        decision = decision_of(row)
        rank = {None: 0, "released": 2}.get(decision, 1)
        if decision == "released" and f"{row['server']}/{row['name']}" not in released:
            continue
        key = row["server"], row["name"], row["spec_hash"]
        best[key] = max(best.get(key, (-1, "")), (rank, row["tool_id"]))
    return {tool_id for _, tool_id in best.values()}


def catalogue_of(
    dataset: Dataset,
    config: RunConfig,
    open_server: OpenServer = open_live,
    lease: LeaseSandbox = lease,
) -> Catalogue:
    """Everything that the run's episodes are put together from, as the dataset holds it.

    Only tools of the run's own domains and servers, as they are defined now; what else was
    imported, and what an edited definition was before, changes nothing.
    """
    own = domains_of(config)
    evolved = evolved_of(dataset, config)
    can_run = available() is None
    servers = {server.name: server for server in servers_of(config) if can_run}
    of_domains = {tool_id for domain in own for tool_id in domain.tools.values()}
    of_domains |= evolved.tools.keys()
    code = code_environments(config.code) if can_run else {}
    of_domains |= set(coding.code_tool_ids()) if code else set()
    recorded = recorded_servers(config)
    servers |= {s.name: s for s in servers_of(config) if s.name in recorded}
    sources = {name: source_of(server) for name, server in servers.items()}
    served = tools_served(dataset.rows("tools"), sources, config.released_tools)
    starts = starts_in(
        dataset.rows("server_starts", ("item_id", "definition", "files", "drop_reason"))
    )
    servers = {
        name: with_starts(server, starts.get(sources[name].definition, {}))
        for name, server in servers.items()
    }
    played = played_domains(dataset, played_of(dataset, config), config.roles["generator"])
    of_domains |= played.tools.keys()
    cassette = cassette_at(config.simulate.cassettes) if recorded else None
    return Catalogue(
        agents=RowBy(dataset, "agents", "agent_id"),
        personas=RowBy(dataset, "personas", "persona_id"),
        tools={
            row["tool_id"]: row
            for row in dataset.rows("tools")
            if row["tool_id"] in of_domains or row["tool_id"] in served
        },
        # an evolved domain has the tools of its file, too
        domains=Domains(evolved, ChainMap(cast(Any, KnownDomains(own)), cast(Any, played))),
        servers=servers,
        code=code,
        lease=lease,
        open_server=open_server,
        kinds=load_extensions(config.extensions).kinds,
        simulate=config.simulate,
        cassette=cassette,
        recorded=frozenset(recorded),
        played=frozenset(played),
    )
