"""The sandbox in which packages are installed, and what is told of an installation that fails.

It is one of this machine, also for servers that run elsewhere: what is installed is kept here.
"""

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from records.errors import ConfigError
from sandboxes.core.network import AUTHORITIES
from sandboxes.core.sandbox import ExecResult, Sandbox
from sandboxes.core.template import WORKSPACE, Bind, Limits, SandboxTemplate
from sandboxes.egress.forwarding import reaching, start_forwarder
from sandboxes.egress.proxy import Egress, open_egress
from sandboxes.installing.sources import HOSTS, IndexSources
from sandboxes.local.backend import lease
from sandboxes.mcp.packages.kept import PackageLock

INSTALLER = SandboxTemplate(
    hostname="installer",
    recycle=False,
    limits=Limits(
        timeout_s=900,
        memory_mb=4096,
        processes=128,
        cpus=2.0,
        output_bytes=32_000_000,
        disk_mb=2048,
        open_files=4096,
    ),
)

OWN_AUTHORITIES = f"{WORKSPACE}/authorities.pem"
LOGIN_REFUSED = re.compile(r"\b(401|403) ((Client )?Error|Unauthorized|Forbidden)|\bE40[13]\b")
CERTIFICATE = re.compile(r"CERTIFICATE_VERIFY_FAILED|SELF_SIGNED|UNABLE_TO_(GET|VERIFY)|CERT_HAS")


class InstalledTree(NamedTuple):
    """Packages as they were installed in a sandbox, which still runs."""

    sandbox: Sandbox
    place: str
    """The folder inside that holds them."""

    below: Path
    """Where it belongs in the folder that is kept."""

    lock: PackageLock
    finish: Callable[[Path], None] = lambda folder: None
    """What is left to do in the kept folder."""


class Installer(NamedTuple):
    """A sandbox that reaches the indexes of some settings and nothing else."""

    sandbox: Sandbox
    sources: IndexSources
    egress: Egress
    authorities: str
    """The file inside with the certificates to trust."""

    def error(self, what: str, why: str) -> ConfigError:
        """No secret of the settings is in it, whatever `why` repeats."""
        return ConfigError(self.sources.redactor().text(f"cannot install {what}: {why}"))

    def obstacle(self, done: ExecResult, log: str = "") -> str | None:
        """What keeps every package from being installed: the connections that were not made, and
        the output, say it. None where it is about the packages."""
        manager, indexes = self.sources.manager, self.sources.shown
        said = "\n".join(
            [log, *(out.decode(errors="replace") for out in (done.stdout, done.stderr))]
        )
        undeclared = [one for one in self.egress.refusals if "not among the hosts" in one]
        if done.out_of_memory or "No space left on device" in said or "ENOSPC" in said:
            disk = INSTALLER.limits.disk_mb
            return f"its packages are too much for the sandbox ({disk} MB on disk)"
        if done.timed_out:
            return f"it took longer than {INSTALLER.limits.timeout_s:g} s"
        if undeclared:
            host = undeclared[0].partition(" ")[0]
            return (
                f"the {manager} index {indexes} leads to {host}, which is no index of your "
                f"settings; if its files are there, set {HOSTS}={host}"
            )
        if CERTIFICATE.search(said):
            return (
                f"the certificate of the {manager} index {indexes} is not trusted; name its "
                f"authority in {manager}'s setting {'cert' if manager == 'pip' else 'cafile'}"
            )
        if LOGIN_REFUSED.search(said):
            return (
                f"the {manager} index {indexes} refuses the login, or lets nobody in without one; "
                f"give it in {manager}'s settings"
            )
        if self.egress.refusals:
            return (
                f"the {manager} index cannot be reached: {next(iter(self.egress.refusals))}; it is "
                f"that of {manager}'s settings ({indexes})"
            )
        return None


@asynccontextmanager
async def installer(
    sources: IndexSources, *, binds: tuple[Bind, ...] = ()
) -> AsyncIterator[Installer]:
    egress = sources.egress()
    async with open_egress(egress) as socket:
        template = INSTALLER.model_copy(update={"binds": binds})
        async with lease(reaching(template, socket)) as sandbox:
            await start_forwarder(sandbox)
            authorities = AUTHORITIES
            if sources.authorities is not None:
                authorities = OWN_AUTHORITIES
                await sandbox.write_file(authorities, sources.authorities)
            yield Installer(sandbox, sources, egress, authorities)
