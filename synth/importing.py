"""Tools of MCP servers into a dataset, outside of any run."""

from pathlib import Path

from records.digest import digest
from records.errors import ConfigError
from records.lease import hold
from records.store import Dataset
from sandboxes.importing import import_server
from sandboxes.launch import server_of_command
from sandboxes.local import available
from sandboxes.servers import ServerConfig, builtin_servers, load_server
from synth.stages import KEPT

RUN_ID = "import"
"""Imports belong to no run; their rows carry this in its place."""


def server_named(text: str) -> ServerConfig:
    """A built-in server by name, a definition file, or a command line."""
    if text in builtin_servers():
        return builtin_servers()[text]
    if text.endswith((".yaml", ".yml")):
        return load_server(Path(text))
    return server_of_command(text)


async def import_servers(servers: list[str], path: Path) -> dict[str, tuple[int, int]]:
    """Add each server's tools to the dataset at `path`; (kept, left out) for each by name.

    A tool that the dataset holds already stays as it is and counts as neither.
    """
    if reason := available():
        raise ConfigError(f"an MCP server is only ever started in a sandbox: {reason}")
    configs = [server_named(text) for text in servers]
    counts: dict[str, tuple[int, int]] = {}
    dataset = Dataset.create_or_open(path)
    with hold(dataset, run_id=RUN_ID, what="synth tools import"):
        for config in configs:
            rows = await import_server(config)
            known = dataset.ids("tools")
            new = [row for row in rows if row["tool_id"] not in known]
            if new:
                dataset.commit(
                    run_id=RUN_ID,
                    stage="import",
                    shard=len(dataset.commits()),
                    tables={"tools": new},
                    items={digest("import", config.identity()): KEPT},
                )
            left_out = sum(row["drop_reason"] is not None for row in new)
            counts[config.name] = (len(new) - left_out, left_out)
    return counts
