"""Processes named so that a recycled pid is never mistaken for a living owner."""

import multiprocessing
import os
import socket
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple


class ProcessId(NamedTuple):
    pid: int
    started: str
    """Start time as the system gives it (clock ticks since boot on Linux): tells two processes
    with one pid apart."""

    @classmethod
    def of(cls, pid: int) -> "ProcessId":
        return cls(pid, _start_time(pid) or "")


def this_process() -> ProcessId:
    return ProcessId.of(os.getpid())


def this_host() -> str:
    """Host name and, where there is one, the process namespace: a pid means nothing elsewhere."""
    namespace = Path("/proc/self/ns/pid")
    return socket.gethostname() + (f" {namespace.readlink()}" if namespace.exists() else "")


def is_alive(process: ProcessId) -> bool:
    """True while that very process runs on this host; a zombie counts as dead."""
    started = _start_time(process.pid)
    return started is not None and started == process.started


def _start_time(pid: int) -> str | None:
    """None when there is no such process, or only its zombie."""
    stat = Path(f"/proc/{pid}/stat")
    if stat.parent.parent.joinpath("self").exists():
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            return None
        return None if fields[0] in "ZX" else fields[19]
    listed = subprocess.run(  # no /proc: macOS
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout.split(maxsplit=1)
    return None if len(listed) < 2 or listed[0].startswith("Z") else listed[1].strip()


def end_with_parent() -> None:
    """In a process that `multiprocessing` has made: do not outlive a parent that is killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_after, args=(parent.join,), daemon=True).start()


def _end_after(wait: Callable[[], None]) -> None:
    wait()
    os._exit(1)
