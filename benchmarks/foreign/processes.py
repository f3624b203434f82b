"""Servers as processes of their own, stopped whatever happens to the benchmark."""

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.foreign.environments import CannotRunError

START_TIMEOUT_S = 300.0
"""litellm alone takes half a minute on two idle cores, and minutes on busy ones."""

STOP_TIMEOUT_S = 10.0

_PR_SET_PDEATHSIG = 1


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def serving(
    name: str,
    command: Sequence[str],
    *,
    ready_url: str,
    log: Path,
    env: Mapping[str, str] | None = None,
) -> Iterator[None]:
    """A server that answers at `ready_url`; its whole process group ends with the block.

    Raises CannotRunError with the end of its log when it does not come up.
    """
    with log.open("wb") as out:
        process = subprocess.Popen(
            command,
            stdout=out,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env=dict(os.environ) | dict(env or {}),
            start_new_session=True,
            preexec_fn=_end_with_parent,
        )
    try:
        _wait(name, process, ready_url, log)
        yield
    finally:
        _stop(process)


def _end_with_parent() -> None:
    """Between fork and exec: the kernel stops the server when the benchmark is killed outright."""
    with contextlib.suppress(OSError, AttributeError):  # Linux only
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _wait(name: str, process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except urllib.error.HTTPError:
            return  # it answers, whatever it says
        except OSError:
            time.sleep(0.2)
    tail = " | ".join(log.read_text(errors="replace").splitlines()[-8:])
    raise CannotRunError(f"{name} did not come up within {START_TIMEOUT_S:.0f} s: {tail}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    for sent in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, sent)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STOP_TIMEOUT_S)
            break
    with contextlib.suppress(ProcessLookupError):  # what the server itself had started
        os.killpg(process.pid, signal.SIGKILL)
