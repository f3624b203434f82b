"""Who a container's programs are, as its security context and its Pod's say together."""

from typing import NamedTuple

from tests.kubernetes.players.objects import Obj


class Identity(NamedTuple):
    uid: int
    gid: int
    groups: tuple[int, ...]
    read_only: bool

    @property
    def entry(self) -> list[str]:
        """The command before a container's own: it leaves root and all capabilities."""
        groups = ",".join(map(str, self.groups))
        return [
            "/usr/bin/setpriv", f"--reuid={self.uid}", f"--regid={self.gid}",
            f"--groups={groups}" if groups else "--clear-groups",
            "--no-new-privs", "--inh-caps=-all", "--bounding-set=-all", "--",
        ]  # fmt: skip


class RefusedError(Exception):
    """A container that its own security context does not let start."""


def identity_of(pod: Obj, container: Obj) -> Identity:
    """The image's own user is root."""
    whole = pod["spec"].get("securityContext") or {}
    own = container.get("securityContext") or {}
    merged = {**whole, **own}
    uid, gid = merged.get("runAsUser", 0), merged.get("runAsGroup", 0)
    if merged.get("runAsNonRoot") and uid == 0:
        said = "container has runAsNonRoot and image will run as root"
        if "runAsUser" in merged:
            said = "container's runAsUser breaks non-root policy"
        raise RefusedError(f"{said} (container: {container['name']})")
    if own.get("privileged"):
        raise RefusedError("privileged containers are not played")
    groups = [*(whole.get("supplementalGroups") or [])]
    if (group := whole.get("fsGroup")) is not None:
        groups.append(group)
    return Identity(uid, gid, tuple(groups), bool(own.get("readOnlyRootFilesystem")))
