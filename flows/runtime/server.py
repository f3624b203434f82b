"""The project's own Prefect server: one a checkout, on loopback, started when needed and reused.

It lives in `.prefect/` (database, log, `server.json`) and never touches the user's Prefect profile.
`server.json` names the server's process and the commands that use it. The last living user stops
it, so a server whose users were all killed is adopted, and stopped, by the next command.
Importing this module imports no Prefect: the environment must be set before Prefect reads it.
"""

import contextlib
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from records.errors import ConfigError, SynthError
from records.files import write_atomic
from records.processes import ProcessId, is_alive, this_process

_QUIET = {
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",  # it logs an error without internet
    "DO_NOT_TRACK": "1",
    # logs go to the UI; the terminal has our progress and our errors
    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
    "PREFECT_INTERNAL_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",
}

START_TIMEOUT_S = 240.0
"""A fresh database is migrated at the first start, which a busy machine stretches to minutes."""
STOP_TIMEOUT_S = 15.0
PREFERRED_PORT = 4200
"""Prefect's own default, taken when it is free."""


@contextlib.contextmanager
def prefect_server(
    home: Path, *, say: Callable[[str], None] = lambda line: None, port: int | None = None
) -> Iterator[str]:
    """Point this process at a Prefect API and yield its URL.

    With `PREFECT_API_URL` set, that server is used and left alone. Otherwise the server of `home`
    is reused or started. Call it before anything imports Prefect, whose logging reads the
    environment then; where something has, Prefect reads the address anew.
    """
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    if url := os.environ.get("PREFECT_API_URL"):
        _read_anew()
        yield url
        return
    url = _join(home.absolute(), say, port)
    os.environ.update({"PREFECT_API_URL": url, "PREFECT_HOME": str(home.absolute())})
    _read_anew()
    try:
        yield url
    finally:
        os.environ.pop("PREFECT_API_URL", None)
        _leave(home.absolute())


def _read_anew() -> None:
    """A Prefect that knows no address starts a server of its own for the first flow."""
    if "prefect.context" in sys.modules:
        from prefect.context import refresh_global_settings_context

        refresh_global_settings_context()


def check_given_server() -> None:
    """ConfigError if `PREFECT_API_URL` names a server that is not there.

    Any answer will do: whether we may use the server is for Prefect's client to find out.
    """
    if not (url := os.environ.get("PREFECT_API_URL")):
        return
    try:
        urllib.request.urlopen(f"{url.rstrip('/')}/health", timeout=10).close()
    except urllib.error.HTTPError:
        return
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"PREFECT_API_URL = {url!r} does not answer ({error}); start that server, or unset the "
            "variable to use the project's own"
        ) from error


def _join(home: Path, say: Callable[[str], None], port: int | None) -> str:
    """Register this process as a user of the server, starting it if none is alive."""
    home.mkdir(parents=True, exist_ok=True)
    with _locked(home):
        state = _read_state(home)
        if state is None or not is_alive(ProcessId(**state["server"])):
            state = _start(home, say, port)
        me = this_process()._asdict()
        others = [u for u in state["users"] if u != me and is_alive(ProcessId(**u))]
        state["users"] = [*others, me]
        _write_state(home, state)
    return f"http://127.0.0.1:{state['port']}/api"


def _leave(home: Path) -> None:
    """Take this process off the list of users, and stop the server when nobody is left."""
    with _locked(home):
        state = _read_state(home)
        if state is None:
            return
        me = this_process()._asdict()
        state["users"] = [u for u in state["users"] if u != me and is_alive(ProcessId(**u))]
        if state["users"]:
            _write_state(home, state)
            return
        _stop(ProcessId(**state["server"]))
        (home / "server.json").unlink(missing_ok=True)


def _start(home: Path, say: Callable[[str], None], port: int | None) -> dict[str, Any]:
    port = port or _free_port()
    say(
        f"starting the Prefect server on http://127.0.0.1:{port} (first start takes up to a minute)"
    )
    environment = os.environ | {
        "PREFECT_HOME": str(home),
        "PREFECT_SERVER_API_HOST": "127.0.0.1",
        "PREFECT_SERVER_API_PORT": str(port),  # else the UI calls port 4200
        # by default any web page may call a server on loopback, and start flows on it
        "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": f"http://127.0.0.1:{port},http://localhost:{port}",
        "PREFECT_SERVER_LOGGING_LEVEL": "WARNING",
    }
    command = [sys.executable, "-m", "uvicorn", "--factory", "--host", "127.0.0.1"]
    command += [
        "--port",
        str(port),
        "--log-level",
        "warning",
        "prefect.server.api.server:create_app",
    ]
    log = home / "server.log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C reaches the command, which then stops the server
        )
    server = ProcessId.of(process.pid)
    state = {"server": server._asdict(), "port": port, "users": [this_process()._asdict()]}
    _write_state(home, state)  # before it is healthy: a kill from here on leaves a trace to adopt
    deadline = time.monotonic() + START_TIMEOUT_S
    while not _healthy(port):
        if process.poll() is not None or time.monotonic() > deadline:
            _stop(server)
            tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
            raise SynthError(f"the Prefect server did not start; its log {log} ends with:\n{tail}")
        time.sleep(0.2)
    return state


def _healthy(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/health", timeout=5) as answer:
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False


def _stop(server: ProcessId) -> None:
    """SIGTERM, then SIGKILL, to the server's process group; quiet if it is already gone."""
    for sent in (signal.SIGTERM, signal.SIGKILL):
        if not is_alive(server):
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, sent)
        deadline = time.monotonic() + STOP_TIMEOUT_S
        while is_alive(server) and time.monotonic() < deadline:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(server.pid, os.WNOHANG)  # reap it if it is our own child
            time.sleep(0.05)


def _free_port() -> int:
    for port in (PREFERRED_PORT, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return probe.getsockname()[1]
    raise SynthError("no free TCP port on 127.0.0.1 for the Prefect server")


@contextlib.contextmanager
def _locked(home: Path) -> Iterator[None]:
    """One command at a time reads and changes `server.json`."""
    with (home / "server.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _read_state(home: Path) -> dict[str, Any] | None:
    path = home / "server.json"
    return json.loads(path.read_text()) if path.exists() else None


def _write_state(home: Path, state: dict[str, Any]) -> None:
    write_atomic(home / "server.json", json.dumps(state).encode())
