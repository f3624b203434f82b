"""The volumes of a real Pod: folders of its own on this machine, written before it starts."""

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

from tests.kubernetes.players.objects import Obj
from tests.kubernetes.players.quantities import amount
from tests.kubernetes.players.real.namespaces import mount_tmpfs
from tests.kubernetes.players.real.sources import MissingError, Sources

FILE_MODE = 0o644
DATA, VERSION = "..data", "..2026_01_01"
"""A ConfigMap's files lie in a folder behind a link, as a kubelet swaps them."""


@dataclass(frozen=True, slots=True)
class Volume:
    name: str
    folder: Path
    empty: bool
    """Whether it is an emptyDir."""
    limit: str | None = None
    """The sizeLimit of an emptyDir, as it is written."""
    tmpfs: bool = False
    read_only: bool = False


async def prepare(sources: Sources, pod: Obj, place: Path) -> dict[str, Volume]:
    """Make all volumes of the Pod below `place`; MissingError where one cannot be yet."""
    found = {}
    for spec in pod["spec"].get("volumes") or []:
        folder = place / spec["name"]
        folder.mkdir(exist_ok=True)
        found[spec["name"]] = await one(sources, pod, spec, folder)
    return found


async def one(sources: Sources, pod: Obj, spec: Obj, folder: Path) -> Volume:
    name = spec["name"]
    if (empty := spec.get("emptyDir")) is not None:
        limit, tmpfs = empty.get("sizeLimit"), empty.get("medium") == "Memory"
        folder.chmod(0o777)
        if tmpfs and not folder.is_mount():
            mount_tmpfs(folder, None if limit is None else int(amount(limit)))
        group = (pod["spec"].get("securityContext") or {}).get("fsGroup")
        if group is not None:
            os.chown(folder, -1, group)
            folder.chmod(0o2777)
        return Volume(name, folder, empty=True, limit=limit, tmpfs=tmpfs)
    for kind, field, named in (
        ("configmap", "configMap", "name"),
        ("secret", "secret", "secretName"),
    ):
        if (source := spec.get(field)) is not None:
            optional = bool(source.get("optional"))
            files = await sources.files(
                kind, pod["metadata"]["namespace"], source[named], optional=optional
            )
            write(folder, chosen(files, source, optional), source.get("defaultMode", FILE_MODE))
            return Volume(name, folder, empty=False, read_only=True)
    kinds = ", ".join(sorted(set(spec) - {"name"}))
    raise MissingError(f'volume "{name}": {kinds} is not played')


def chosen(
    files: dict[str, bytes], source: Obj, optional: bool
) -> dict[str, tuple[bytes, int | None]]:
    """Path in the volume -> content and its own mode."""
    if not (items := source.get("items")):
        return {key: (data, None) for key, data in files.items()}
    found = {}
    for item in items:
        if item["key"] in files:
            found[item["path"]] = files[item["key"]], item.get("mode")
        elif not optional:
            raise MissingError(f"references non-existent config key: {item['key']}")
    return found


def write(folder: Path, files: dict[str, tuple[bytes, int | None]], mode: int) -> None:
    data = folder / VERSION
    data.mkdir(exist_ok=True)
    for path, (content, own) in files.items():
        target = data / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        target.chmod(mode if own is None else own)
    if not (folder / DATA).is_symlink():
        (folder / DATA).symlink_to(VERSION)
    for top in {path.split("/")[0] for path in files}:
        if not (folder / top).is_symlink():
            (folder / top).symlink_to(f"{DATA}/{top}")


def used_bytes(folder: Path) -> int:
    """What the files below take, as far as they hold still."""
    total, stack = 0, [folder]
    while stack:
        with contextlib.suppress(OSError), os.scandir(stack.pop()) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        stack.append(Path(entry.path))
    return total
