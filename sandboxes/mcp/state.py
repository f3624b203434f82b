"""The state of a server in its sandbox: what its probes print, or what lies in its workspace."""

import json
from pathlib import Path
from typing import Any

from records.errors import TransientError
from sandboxes.core.programs import last_words, program
from sandboxes.core.sandbox import Sandbox
from sandboxes.mcp.secret_values import Redactor
from sandboxes.mcp.servers import ServerConfig

ServerState = dict[str, dict[str, dict[str, Any]]]
"""Entity -> id -> row."""

PROGRAM = Path(__file__).parents[1] / "inside" / "read_state.py"

BOUNDS = {"file_bytes": 1 << 20, "total_bytes": 16 << 20, "max_rows": 5_000}
"""Of what is read of a workspace: bytes of one file and of all, rows of one table."""

MAX_STATE_BYTES = 32 << 20


async def state_of(config: ServerConfig, sandbox: Sandbox, redactor: Redactor) -> ServerState:
    """The rows of the server's state as they are now. A line that a probe prints is a row, and its
    text the id. Of a server without probes that only reads there is nothing to read.

    TransientError where the sandbox cannot read its own workspace.
    """
    if config.probes:
        return {
            entity: await _lines(sandbox, argv, redactor) for entity, argv in config.probes.items()
        }
    return await _workspace(config, sandbox, redactor) if config.may_write else {}


async def _lines(
    sandbox: Sandbox, argv: tuple[str, ...], redactor: Redactor
) -> dict[str, dict[str, Any]]:
    done = await sandbox.exec(argv)
    if done.exit_code:
        lines = [f"the probe ended with exit code {done.exit_code}"]
    else:
        lines = redactor.text(done.stdout.decode(errors="replace")).splitlines()
    return {line: {"line": line} for line in lines}


async def _workspace(config: ServerConfig, sandbox: Sandbox, redactor: Redactor) -> ServerState:
    request = json.dumps(BOUNDS | {"root": sandbox.template.workdir})
    process = await sandbox.open_stdio([*program(PROGRAM), request])
    answer = bytearray()
    while data := await process.read():
        answer += data
        if len(answer) > MAX_STATE_BYTES:
            await process.kill()
            break
    ended = await process.wait()
    if ended.exit_code:
        said = last_words(ended.stderr) or "nothing"
        raise TransientError(
            f"the workspace of server {config.name} cannot be read: exit code {ended.exit_code}, "
            f"saying {said}"
        )
    return redactor.value(json.loads(bytes(answer))["state"])
