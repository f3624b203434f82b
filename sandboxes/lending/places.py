"""Where the sandboxes of a run are, as its configuration says it."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal

from pydantic import Field

from records.config import Config
from records.errors import ConfigError
from sandboxes.egress.forwarding import ClusterProxy
from sandboxes.egress.passes import check_key
from sandboxes.kubernetes.settings import KubernetesSettings
from sandboxes.lending.leases import HERE, SandboxPlace, leasing_from

EXTRA = "pip install 'agentic-synth[k8s]'"


class SandboxesConfig(Config):
    """Where code, repositories and MCP servers run. No row depends on it."""

    backend: Literal["local", "kubernetes"] = "local"
    """`local`: on this machine; `kubernetes`: in Pods of a cluster (docs/kubernetes.md)."""
    live: int | None = Field(default=None, ge=1)
    """Sandboxes of the run alive at once. None: what this machine holds (SYNTH_LIVE_SERVERS where
    it is set), and on a cluster one for each item in flight (`concurrency`)."""
    kubernetes: KubernetesSettings = KubernetesSettings()
    """Of the cluster."""

    def live_of(self, concurrency: int, here: int) -> int:
        """How many sandboxes may be alive; `here`: on this machine, unless `live` says it."""
        if self.live is not None:
            return self.live
        return here if self.backend == "local" else concurrency

    @asynccontextmanager
    async def in_use(self) -> AsyncIterator[None]:
        """Inside, sandboxes are leased from there. ConfigError where that cannot be: no client, no
        cluster, nothing there that holds foreign code, no key of its egress proxy."""
        if self.backend == "local":
            with leasing_from(HERE):
                yield
            return
        settings = self.kubernetes
        proxy = proxy_of(settings)
        try:
            from sandboxes.kubernetes.backend import KubernetesBackend
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "kubernetes":
                raise
            raise ConfigError(
                f'sandboxes.backend = "kubernetes" needs the Kubernetes client: {EXTRA}'
            ) from error
        paces = (
            ("starts_per_s", settings.creations_per_s),
            ("starts_at_once", settings.creations_burst),
        )
        backend = KubernetesBackend(settings)
        try:
            await backend.held()
            with leasing_from(SandboxPlace(backend, proxy, paces, backend.counted)):
                yield
        finally:
            await asyncio.shield(backend.close())


def proxy_of(settings: KubernetesSettings) -> ClusterProxy | None:
    """The cluster's egress proxy. ConfigError where the settings name one and its key is not set,
    or could be guessed."""
    if settings.egress_proxy is None:
        return None
    name = settings.egress_key_env
    key = os.environ.get(name, "").strip().encode()
    if not key:
        raise ConfigError(
            f"sandboxes.kubernetes.egress_proxy is {settings.egress_proxy}, and {name} is not set; "
            "it holds the key of the Secret synth-egress-key, by which servers show what they may "
            "reach (docs/kubernetes.md)"
        )
    try:
        check_key(key)
    except ValueError as error:
        raise ConfigError(f"{name}: {error}") from error
    return ClusterProxy(settings.egress_proxy, key)
