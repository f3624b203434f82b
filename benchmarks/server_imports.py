"""Which MCP servers of the package indexes start in a sandbox from a command alone, and what
becomes of their tools: `python -m benchmarks.server_imports FOLDER [--install] [--only NAME ...]`.

`mcp_servers.jsonl` names the packages. Each is installed in a folder of its own below FOLDER, from
the indexes of the user's pip and npm settings, and then started without a network.
"""

import argparse
import asyncio
import json
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from records.errors import SynthError
from sandboxes.mcp.importing import import_server
from sandboxes.mcp.servers import ServerConfig
from sandboxes.mcp.session import open_server

LISTED = Path(__file__).parent / "mcp_servers.jsonl"


def installed_at(folder: Path, listed: dict[str, Any]) -> Path:
    """The virtual environment or npm prefix of one server."""
    package = re.split(r"(?<=.)[@=<\[]", listed["requirements"][0])[0]
    kind = "py" if listed["index"] == "pypi" else "npm"
    return folder / kind / re.sub(r"[^a-z0-9]+", "-", package.lower()).strip("-")


def install(place: Path, listed: dict[str, Any]) -> None:
    if listed["index"] == "pypi":
        subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
        subprocess.run(
            [str(place / "bin" / "pip"), "install", "-q", *listed["requirements"]], check=True
        )
    else:
        command = ["npm", "install", "--silent", "--prefix", str(place), "--ignore-scripts"]
        subprocess.run([*command, *listed["requirements"]], check=True)


def config_of(place: Path, listed: dict[str, Any]) -> ServerConfig:
    where = {"venv": place} if listed["index"] == "pypi" else {"npm_prefix": place}
    return ServerConfig.model_validate(
        {
            "name": listed["name"],
            "command": listed["command"],
            "env": listed["env"],
            "license": listed["license"],
            "fixtures": {"default": {"setup": listed["setup"]}},
            "limits": {"memory_mb": 1024},
        }
        | where
    )


async def measured(config: ServerConfig) -> dict[str, Any]:
    begun = time.monotonic()
    try:
        rows = await import_server(config)
        async with open_server(config) as server:
            state = await server.state()
    except SynthError as error:
        return {"server": config.name, "why_not": str(error)[:300]}
    return {
        "server": config.name,
        "tools": len(rows),
        "kept": sum(row["drop_reason"] is None for row in rows),
        "dropped": dict(Counter(row["drop_reason"] for row in rows if row["drop_reason"])),
        "say_that_they_read": sum(bool(row["annotations"].get("readOnlyHint")) for row in rows),
        "entities_at_start": sorted(state)[:8],
        "seconds": round(time.monotonic() - begun, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the packages are or shall be installed")
    parser.add_argument("--install", action="store_true", help="install what is missing")
    parser.add_argument("--only", nargs="*", help="names of servers; all without")
    parsed = parser.parse_args()
    for line in LISTED.read_text(encoding="utf-8").splitlines():
        listed = json.loads(line)
        if parsed.only and listed["name"] not in parsed.only:
            continue
        place = installed_at(parsed.folder, listed)
        if parsed.install and not place.exists():
            install(place, listed)
        print(json.dumps(asyncio.run(measured(config_of(place, listed)))), flush=True)


if __name__ == "__main__":
    main()
