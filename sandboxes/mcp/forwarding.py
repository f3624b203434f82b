"""What a sandbox needs to reach the proxy of `sandboxes.mcp.egress`: the inside of the way out."""

from pathlib import Path

from records.errors import TransientError
from sandboxes.core import python_env
from sandboxes.core.network import AUTHORITIES, network_files
from sandboxes.core.sandbox import Sandbox
from sandboxes.core.template import Bind, SandboxTemplate

FORWARDER = "/opt/egress/forward.py"
SOCKET = "/opt/egress/socket"
PORT = 3128
PROXY = f"http://127.0.0.1:{PORT}"

ENV = {
    **{
        name: PROXY
        for upper in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
        for name in (upper, upper.lower())
    },
    "NO_PROXY": "localhost,127.0.0.1,::1",
    "no_proxy": "localhost,127.0.0.1,::1",
    "NODE_USE_ENV_PROXY": "1",
    "SSL_CERT_FILE": AUTHORITIES,
    "REQUESTS_CA_BUNDLE": AUTHORITIES,
    "NODE_EXTRA_CA_CERTS": AUTHORITIES,
}
"""For the server's process: where its proxy is, and whom this machine trusts."""


def is_set_by_us(name: str) -> bool:
    """Whether a variable of this name, in any case, says where the proxy is or whom to trust."""
    return name.upper().endswith("_PROXY") or name.upper() in ENV


def reaching(template: SandboxTemplate, socket: Path) -> SandboxTemplate:
    """The template with the proxy's socket in it. Its sandbox serves one server, then ends."""
    own = Path(__file__).parents[1] / "inside" / "forward.py"
    files = {FORWARDER: own.read_text(encoding="utf-8")}
    if trusted := network_files().get(AUTHORITIES):
        files[AUTHORITIES] = trusted.decode(errors="replace")
    changed = {
        "binds": (*template.binds, Bind(source=str(socket), target=SOCKET)),
        "files": template.files | files,
        "recycle": False,
    }
    return template.model_copy(update=changed)


async def start_forwarder(sandbox: Sandbox) -> None:
    """Returns once it listens; it lives as long as the sandbox. TransientError if it does not."""
    argv = [python_env.base_python(), "-I", FORWARDER, str(PORT), SOCKET]
    process = await sandbox.open_stdio(argv)
    if await process.read() != b"ready\n":
        said = (await process.wait()).stderr.decode(errors="replace").strip()[-300:]
        raise TransientError(f"the forwarder did not start: {said}")
