"""What a sandbox needs to reach the proxy (`sandboxes.egress.proxy`): the inside of the way out."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from records.errors import ConfigError, TransientError
from sandboxes.core import python_env
from sandboxes.core.network import AUTHORITIES, network_files
from sandboxes.core.sandbox import Sandbox
from sandboxes.core.template import Bind, SandboxTemplate
from sandboxes.egress import passes
from sandboxes.egress.service import WORD

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


class ClusterProxy(NamedTuple):
    """The proxy beside the sandboxes of a cluster (`sandboxes.egress.service`)."""

    address: str
    """HOST:PORT as a sandbox reaches it: a number, since no name is resolved inside."""
    key: bytes
    """With which passes are written."""

    def __repr__(self) -> str:
        return f"ClusterProxy(address={self.address!r})"

    def first_line(self, name: str, hosts: Sequence[str]) -> str:
        """What the forwarder of this server's sandbox says first. ConfigError where it cannot be
        written."""
        try:
            return WORD.decode() + passes.written(name, hosts, self.key)
        except ValueError as error:
            raise ConfigError(f"server {name}: {error}") from error


def reaching(template: SandboxTemplate, socket: Path | None) -> SandboxTemplate:
    """The template with the proxy's socket in it; without one, of a sandbox that may connect to the
    proxy of its cluster. Its sandbox serves one server, then ends."""
    own = Path(__file__).parents[1] / "inside" / "forward.py"
    files = {FORWARDER: own.read_text(encoding="utf-8")}
    if trusted := network_files().get(AUTHORITIES):
        files[AUTHORITIES] = trusted.decode(errors="replace")
    changed = {"files": template.files | files, "recycle": False}
    if socket is None:
        changed["egress"] = True
    else:
        changed["binds"] = (*template.binds, Bind(source=str(socket), target=SOCKET))
    return template.model_copy(update=changed)


async def start_forwarder(sandbox: Sandbox, where: str = SOCKET, first_line: str = "") -> None:
    """Returns once it listens; it lives as long as the sandbox. TransientError if it does not.
    `where` and `first_line` are those of a `ClusterProxy`."""
    argv = [python_env.base_python(), "-I", FORWARDER, str(PORT), where, first_line]
    process = await sandbox.open_stdio(argv)
    if await process.read() != b"ready\n":
        said = (await process.wait()).stderr.decode(errors="replace").strip()[-300:]
        raise TransientError(f"the forwarder did not start: {said}")
