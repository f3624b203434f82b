"""What the backends of the tests refuse."""

from records.errors import ConfigError
from sandboxes.core.backend import Backend, Capability
from sandboxes.core.body import Snapshot
from sandboxes.core.template import SandboxTemplate


def lacking(backend: str, capability: Capability) -> ConfigError:
    return ConfigError(f"sandboxes of {backend} cannot do this: {capability}")


def refuse(backend: Backend, template: SandboxTemplate, snapshot: Snapshot | None) -> None:
    """ConfigError for the first thing that is asked for and that the backend cannot do."""
    asked = {
        Capability.BINDS: template.binds or template.files or template.links,
        Capability.NETWORK: template.network,
        Capability.SNAPSHOTS: snapshot is not None,
        Capability.CONTAINED: template.limits.strict,
    }
    for capability, wanted in asked.items():
        if wanted and capability not in backend.capabilities:
            raise lacking(backend.name, capability)
