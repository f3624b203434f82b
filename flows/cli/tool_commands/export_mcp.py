"""`synth tools export-mcp`: a domain as an MCP server, for any agent framework."""

from typing import TYPE_CHECKING

from flows.cli.shared.options import DatasetOption, Port
from records.errors import ConfigError

if TYPE_CHECKING:
    from tool_specs.domains.domain import Domain


def export_mcp(
    domain: str,
    /,
    *,
    dataset: DatasetOption = None,
    http: bool = False,
    port: Port = 8765,
) -> None:
    """Run a domain as an MCP server whose state lasts until it ends.

    Speaks MCP on standard input and output, so that a client starts it itself, as in
    `{"command": "synth", "args": ["tools", "export-mcp", "home_hub"]}`; with --http it listens on
    http://127.0.0.1:PORT/mcp. Resources (world://DOMAIN/ENTITY) show the rows as they are.

    Parameters
    ----------
    domain
        Name of a domain with tools of its own (`synth domain list`), path of a .yaml file, or with
        --dataset a domain that has evolved tools there.
    dataset
        Folder of a dataset: the domain with its tools as the dataset holds them.
    http
        Serve streamable HTTP instead of standard input and output.
    port
        With --http: where to listen; 0 takes a free port and prints it.
    """
    import asyncio

    from sandboxes.mcp.domains.domain_server import DomainServer

    server = DomainServer(_written(domain) if dataset is None else _evolved(domain, dataset))
    asyncio.run(server.run_http(port) if http else server.run_stdio())


def _written(name: str) -> "Domain":
    from tool_specs.domains.taxonomy import load_taxonomy

    (domain,) = load_taxonomy([name])
    if not domain.tools:
        raise ConfigError(
            f"{name}: the domain has no tools of its own; `synth tools evolve --domains {name} "
            f"--count 40 --dataset D` makes some, and `export-mcp {name} --dataset D` serves them"
        )
    return domain


def _evolved(name: str, dataset: str) -> "Domain":
    from flows.runtime.settings import open_dataset
    from synth.catalogue.evolved_domains import ALL, evolved_domains

    found = evolved_domains(open_dataset(dataset), [f"{ALL}:{name}"], run_id="")
    return next(iter(found.values()))
