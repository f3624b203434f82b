"""What lies in a workspace, byte for byte: of a folder of the user's, or of a server's sandbox."""

import base64
import json
import os
from collections.abc import Mapping
from pathlib import Path

from records.errors import ConfigError, TransientError
from sandboxes.core.programs import last_words, program
from sandboxes.core.sandbox import Sandbox

WorkspaceFiles = dict[str, str]
"""Path -> base64; a path that ends with a slash is a folder without files."""

PROGRAM = Path(__file__).parents[1] / "inside" / "read_files.py"

MOST_BYTES = 16 << 20
"""Of all files of one workspace together."""


def files_of(folder: Path) -> WorkspaceFiles:
    """The files below a folder, links not followed. ConfigError where it is none, or too much."""
    if not folder.is_dir():
        raise ConfigError(f"fixture folder {folder} does not exist, or is no folder")
    found: WorkspaceFiles = {}
    size = 0
    for at, below, names in os.walk(folder):
        below.sort()
        own = [Path(at, name) for name in sorted(names)]
        if not (below or own) and Path(at) != folder:
            found[f"{Path(at).relative_to(folder)}/"] = ""
        for path in own:
            if path.is_symlink() or not path.is_file():
                continue
            size += path.stat().st_size
            if size > MOST_BYTES:
                raise ConfigError(
                    f"fixture folder {folder} has more than {MOST_BYTES} bytes; show it with "
                    "`binds` and copy what is needed in the fixture's `setup`"
                )
            data = base64.b64encode(path.read_bytes()).decode("ascii")
            found[str(path.relative_to(folder))] = data
    return found


async def put_files(sandbox: Sandbox, files: Mapping[str, str]) -> None:
    """Write them into the sandbox's workspace."""
    for path in files:
        if path.endswith("/"):
            await sandbox.exec(["mkdir", "-p", "--", path])
    for path, data in files.items():
        if not path.endswith("/"):
            await sandbox.write_file(path, base64.b64decode(data))


async def files_in(sandbox: Sandbox, *, limit: int = MOST_BYTES) -> WorkspaceFiles:
    """The files of the sandbox's workspace. ConfigError where they are more than `limit` bytes,
    TransientError where the sandbox cannot read them."""
    request = json.dumps({"root": sandbox.template.workdir, "total_bytes": limit})
    process = await sandbox.open_stdio([*program(PROGRAM), request])
    answer = bytearray()
    while data := await process.read():
        answer += data
        if len(answer) > 2 * limit + (1 << 20):
            await process.kill()
            break
    ended = await process.wait()
    said = last_words(ended.stderr) or "nothing"
    if ended.exit_code == 3:
        raise ConfigError(f"the workspace is too large to keep: {said}")
    if ended.exit_code:
        raise TransientError(
            f"the workspace cannot be read: exit code {ended.exit_code}, saying {said}"
        )
    return json.loads(bytes(answer))
