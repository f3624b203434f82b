"""The process that computes what may hang or grow: it forks a child for every request.

Libraries are imported, and data sets made, before the fork, so that a child begins at once. A child
has a limit of CPU time, told by the system's clock for it and not by the wall's, so that a busy
machine changes no answer; it has a limit of memory, writes no file, and leaves nothing behind: what
one answer does, the next one never sees.
"""

import contextlib
import gc
import importlib
import json
import os
import resource
import signal
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

CHILD_BYTES = 3 * 2**30
"""Of address space for a child: sympy and NumPy take 0.7 GB of it before they do anything."""

MODULES = {
    "maths": "synth.gym.maths.mathematics",
    "puzzles": "synth.gym.maths.library",
}
"""Name of what can be asked for -> the module that has `prepare` and `answer`."""

GONE = EOFError, OSError
"""What reading or writing raises once whoever asked has ended."""


def main() -> None:
    """Of the process: answer until whoever asks is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever asks, whose end ends this
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with Connection(int(sys.argv[1])) as channel, contextlib.suppress(*GONE):
        channel.send_bytes(b"{}")
        while True:
            request = json.loads(channel.recv_bytes())
            channel.send_bytes(json.dumps(_answered(request)).encode())


def _answered(request: dict[str, Any]) -> dict[str, Any]:
    """{"result": ...}, or {"fault": ..., "detail": ...}, of `checker.CheckFault` or "killed"."""
    module = importlib.import_module(MODULES[request["module"]])
    arguments = request["arguments"]
    try:
        module.prepare(arguments)
    except ImportError as error:
        detail = f"{error}; install the extra `gym` (pip install 'agentic-synth[gym]')"
        return {"fault": "not_prepared", "detail": detail}
    except Exception as error:  # the library's, for settings that it does not know
        return {"fault": "not_prepared", "detail": f"{type(error).__name__}: {error}"}
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _in_child(writing, module.answer, arguments, request["cpu_s"], request["wall_s"])
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        written = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0:
        return json.loads(written)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGPROF:
        return {"fault": "cpu", "detail": f"more than {request['cpu_s']} s of CPU time"}
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGKILL, signal.SIGALRM):
        return {"fault": "killed", "detail": "its process was ended, or got no CPU time for long"}
    return {"fault": "died", "detail": f"the process ended with status {status}"}


def _in_child(
    writing: int,
    answer: Callable[[dict[str, Any]], Any],
    arguments: dict[str, Any],
    cpu_s: float,
    wall_s: float,
) -> None:
    """Never comes back."""
    code = 1
    gc.disable()  # it would touch, and so copy, every page that is shared with the parent
    try:
        signal.signal(signal.SIGPROF, signal.SIG_DFL)  # ends the process, in C code as well
        signal.setitimer(signal.ITIMER_PROF, cpu_s)
        signal.setitimer(signal.ITIMER_REAL, wall_s)  # whoever waits for nothing ends as well
        resource.setrlimit(resource.RLIMIT_AS, (CHILD_BYTES, CHILD_BYTES))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        try:
            found = {"result": answer(arguments)}
        except MemoryError:
            found = {"fault": "memory", "detail": f"more than {CHILD_BYTES >> 30} GiB"}
        except Exception as error:  # whatever a library makes of untrusted text
            found = {"fault": "raised", "detail": f"{type(error).__name__}: {error}"[:300]}
        data = json.dumps(found).encode()
        while data:
            data = data[os.write(writing, data) :]
        code = 0
    finally:
        os._exit(code)
