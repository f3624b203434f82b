"""A program of this project in a process beside this one, at the other end of a pipe: for work that
may hang or grow, and then ends with its process alone."""

import os
import subprocess
import sys
import weakref
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from types import MappingProxyType

_ROOT = Path(__file__).resolve().parents[1]


class PipedProcess:
    """Begins when it is asked for first, and again after it was ended; ends with this object. Not
    for concurrent use."""

    def __init__(
        self,
        module: str,
        arguments: Sequence[str] = (),
        *,
        start_s: float,
        env: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """`module.main` is the program: the first of its `sys.argv[1:]` is the number of its end of
        the pipe, on which it says anything at all once it is ready, within `start_s` seconds."""
        self._command = f"from {module} import main; main()"
        self._arguments, self._start_s, self._env = list(arguments), start_s, dict(env)
        self._started: tuple[Connection, weakref.finalize] | None = None

    def channel(self) -> Connection:
        """This process's end of the pipe. EOFError where the other one does not begin; what it says
        of that stands on the terminal."""
        if self._started is not None:
            return self._started[0]
        ours, theirs = Pipe()
        path = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-c", self._command, f"{theirs.fileno()}", *self._arguments],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": path, **self._env},
            )
        self._started = ours, weakref.finalize(self, _end, process, ours)
        try:
            if not ours.poll(self._start_s):
                raise EOFError
            ours.recv_bytes()
        except (EOFError, OSError) as error:
            self.close()
            raise EOFError from error
        return ours

    def close(self) -> None:
        """End the process, if there is one."""
        if self._started is not None:
            self._started[1]()
        self._started = None


def _end(process: subprocess.Popen[bytes], channel: Connection) -> None:
    channel.close()
    process.kill()
    process.wait()
