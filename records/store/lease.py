"""Who writes to a dataset: one run at a time, found out by a file, `lease.json`.

The file is created exclusively and its modification time is the heartbeat: touched through the
owner's open handle, so a late heartbeat of a replaced owner touches nothing that counts. All
taking and replacing happens under the exclusive lock on the dataset's marker, which the kernel
releases when a process dies; a commit holds that lock shared, so nobody ever sweeps away the
parts of a commit that is under way, not even of an orphan.

Child flows share their parent's lease: its token travels in the environment of the process tree
(SYNTH_LEASE), or by hand to another host.
"""

import os
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from pydantic import BaseModel, ConfigDict, ValidationError

from records.errors import ConfigError
from records.files import create_exclusive, locked, prepared, write_atomic
from records.processes import ProcessId, is_alive, this_host, this_process
from records.store import views
from records.store.marker import MARKER

FILE = "lease.json"
VARIABLE = "SYNTH_LEASE"
"""Environment variable: tokens of the leases that this process tree holds, comma between."""
HEARTBEAT_S = 5.0
DEAD_AFTER_S = 60.0
"""Without a heartbeat for this long an owner on another host counts as dead: twelve missed."""

_ENVIRONMENT = threading.Lock()


class Lease(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    token: str
    host: str
    """As `this_host` gives it."""
    pid: int
    started: str
    """When the process began, which tells it from a later one with the same pid."""
    run_id: str
    what: str
    """What the owner does, in words for whoever finds the dataset held: `synth run demo.yaml`."""
    since: str
    """ISO time, UTC."""


class Holdable(Protocol):
    """What `hold` needs of a dataset."""

    root: Path

    def sweep(self) -> None:
        """Remove what killed writers left."""
        ...


@contextmanager
def hold(dataset: Holdable, *, run_id: str, what: str, token: str | None = None) -> Iterator[Lease]:
    """Hold the dataset for writing until the block ends, swept of what a killed writer left.

    A dead owner is replaced: at once when it was a process of this host, after 60 s without a
    heartbeat otherwise. A live one of another run is a ConfigError that names it. Inside a block
    for the same run (this process, its children, or whoever got `token`) it is the same lease.
    """
    tokens = _tokens() | ({token} if token else set())
    path = dataset.root / FILE
    with locked(dataset.root / MARKER, exclusive=True):
        current = _read(path)
        shared = current is not None and current.token in tokens and current.run_id == run_id
        if current is None or not shared:
            current = _take(path, _lease_of_this_process(run_id, what), instead_of=current)
            try:
                dataset.sweep()
            except BaseException:
                path.unlink()
                raise
        handle = os.open(path, os.O_RDONLY)
    with _in_environment(current.token), _kept(path, handle, current, owned=not shared):
        yield current


def check_ours(root: Path) -> None:
    """Refuse to write to a dataset that is held, unless this process tree holds it.

    Also what stops the orphans of a killed owner, once another run has replaced it.
    """
    path = root / FILE
    current = _read(path)
    if current and current.token not in _tokens():
        raise ConfigError(f"{_held(path, current)}; this process does not hold it and cannot write")


def remove_unused(root: Path) -> None:
    """Remove a dataset that holds no commit and that nobody holds, and its folder if nothing else
    is in it: what a run that was refused before its first commit has made."""
    with locked(root / MARKER, exclusive=True):
        if (root / FILE).exists() or any(root.glob("commits/*.json")):
            return
        for name in (views.FILE, MARKER):
            (root / name).unlink(missing_ok=True)
    folders = sorted((p for p in root.rglob("*") if p.is_dir()), key=lambda p: -len(p.parts))
    with suppress(OSError):  # somebody writes there by now
        for folder in (*folders, root):
            folder.rmdir()


def _take(path: Path, mine: Lease, *, instead_of: Lease | None) -> Lease:
    """Write our lease in place of a dead owner's or of none. Under the exclusive lock."""
    data = (mine.model_dump_json() + "\n").encode()
    if instead_of is not None:
        if not _is_dead(path, instead_of):
            raise ConfigError(
                f"{_held(path, instead_of)}. Wait for it to end or stop it, then run this again"
            )
        write_atomic(path, data)
    # on a filesystem whose locks do not reach other hosts the name itself still decides
    elif not create_exclusive(path, data):
        raise ConfigError(f"{path} was taken by another host this moment; run this again")
    return mine


@contextmanager
def _kept(path: Path, handle: int, lease: Lease, *, owned: bool) -> Iterator[None]:
    """Heartbeats while the block runs, and the lease given back after it, when it is our own."""
    stop = threading.Event()
    thread = threading.Thread(target=_beat, args=(handle, stop), name="lease", daemon=True)
    if owned:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        if owned:
            thread.join()
            with locked(path.with_name(MARKER), exclusive=True):
                current = _read(path)
                if current and current.token == lease.token:
                    path.unlink()
        os.close(handle)


def _beat(handle: int, stop: threading.Event) -> None:
    while not stop.wait(HEARTBEAT_S):
        os.utime(handle)


def _read(path: Path) -> Lease | None:
    try:
        return Lease.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValidationError as error:
        raise ConfigError(
            f"{path} is damaged, so nobody can tell who writes here; "
            "if no run is going, delete it and run this again"
        ) from error


def _is_dead(path: Path, lease: Lease) -> bool:
    if lease.host == this_host():
        return not is_alive(ProcessId(lease.pid, lease.started))
    return _silent_s(path) > DEAD_AFTER_S


def _silent_s(path: Path) -> float:
    """Seconds since the last heartbeat by the filesystem's own clock, which all hosts share."""
    with prepared(path, b"") as now:
        return now.stat().st_mtime - path.stat().st_mtime


def _held(path: Path, lease: Lease) -> str:
    return (
        f"dataset {path.parent} is held by {lease.what} (run {lease.run_id}, process {lease.pid} "
        f"on {lease.host}) since {lease.since}, last heartbeat {_silent_s(path):.0f} s ago"
    )


def _lease_of_this_process(run_id: str, what: str) -> Lease:
    process = this_process()
    return Lease(
        token=secrets.token_hex(16),
        host=this_host(),
        pid=process.pid,
        started=process.started,
        run_id=run_id,
        what=what,
        since=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _tokens() -> set[str]:
    return set(filter(None, os.environ.get(VARIABLE, "").split(",")))


@contextmanager
def _in_environment(token: str) -> Iterator[None]:
    """Let this process and the children that it starts know the token."""
    with _ENVIRONMENT:
        known = token in _tokens()
        os.environ[VARIABLE] = ",".join(sorted(_tokens() | {token}))
    try:
        yield
    finally:
        if not known:
            with _ENVIRONMENT:
                os.environ[VARIABLE] = ",".join(sorted(_tokens() - {token}))
