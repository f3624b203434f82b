"""`synth tools export-mcp`: a domain as an MCP server, for any agent framework."""

from flows.cli_run import Port
from records.errors import ConfigError


def export_mcp(
    domain: str,
    /,
    *,
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
        Name of a built-in domain (`synth domain list` names them), or path of a .yaml file.
    http
        Serve streamable HTTP instead of standard input and output.
    port
        With --http: where to listen; 0 takes a free port and prints it.
    """
    import asyncio

    from sandboxes.domain_server import DomainServer
    from tool_specs.taxonomy import load_taxonomy

    (loaded,) = load_taxonomy([domain])
    if not loaded.tools:
        raise ConfigError(
            f"{domain}: the domain has no tools; `synth tools evolve --domains {domain}` makes some"
        )
    server = DomainServer(loaded)
    asyncio.run(server.run_http(port) if http else server.run_stdio())
