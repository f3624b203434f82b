"""Whoever computes what may hang or grow, in a process beside this one (`worker.py`)."""

import json
import threading
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from records.errors import ConfigError, TransientError
from records.piped_process import PipedProcess

CHECK_CPU_S = 2.0
"""Of CPU time for one answer: ours. A comparison takes milliseconds, a hard one some tenths."""

DRAW_CPU_S = 120.0
"""Of CPU time for drawing some tens of puzzles: the slowest kind takes about a second for one."""

START_S = 180.0
"""For the process to begin, on a busy machine."""

WALL_PER_CPU = 60.0
"""Seconds of the wall's clock for a second of CPU time before the process is given up."""

CheckFault = Literal["not_prepared", "cpu", "memory", "died", "raised"]
"""Why nothing was computed: the library is missing or refuses the settings, or, for a reason that
lies in the text itself, time or memory did not suffice, or the library failed."""


class Computed(NamedTuple):
    result: Any
    """A JSON value; None where there is a fault."""
    fault: CheckFault | None = None
    detail: str = ""


class Checker:
    """One request at a time, from any thread. The process starts with the first and ends with this
    object."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = PipedProcess(
            "synth.gym.maths.worker",
            start_s=START_S,
            env={
                # puzzles are drawn over sets of words in places, whose order hangs on this
                "PYTHONHASHSEED": "0",
                "OPENBLAS_NUM_THREADS": "1",
                "OMP_NUM_THREADS": "1",
            },
        )

    def compute(
        self, module: Literal["maths", "puzzles"], arguments: Mapping[str, Any], *, cpu_s: float
    ) -> Computed:
        """What `answer` of the module makes of the arguments. TransientError where the process
        cannot begin, ends, or gives no answer in `WALL_PER_CPU` times the CPU time."""
        wall_s = cpu_s * WALL_PER_CPU
        request = {
            **{"module": module, "arguments": dict(arguments)},
            **{"cpu_s": cpu_s, "wall_s": wall_s},
        }
        with self._lock:
            try:
                channel = self._process.channel()
            except EOFError as error:
                raise TransientError(
                    "no process began that checks answers; the terminal may say why"
                ) from error
            try:
                channel.send_bytes(json.dumps(request).encode())
                if not channel.poll(wall_s + START_S):
                    raise TimeoutError
                answer = json.loads(channel.recv_bytes())
            except (EOFError, OSError, TimeoutError) as error:
                self._process.close()
                raise TransientError(
                    "the process that checks answers ended or is stuck; it starts again with the "
                    "next answer"
                ) from error
        if answer.get("fault") == "killed":
            raise TransientError(f"an answer was not checked: {answer['detail']}")
        return Computed(answer.get("result"), answer.get("fault"), answer.get("detail", ""))

    def judged(self, module: Literal["maths", "puzzles"], arguments: Mapping[str, Any]) -> Computed:
        """`compute` about an answer, in `CHECK_CPU_S`. ConfigError where the library is missing,
        which no answer is to blame for."""
        computed = self.compute(module, arguments, cpu_s=CHECK_CPU_S)
        if computed.fault == "not_prepared":
            raise ConfigError(f"gym: answers cannot be checked: {computed.detail}")
        return computed

    def close(self) -> None:
        """End the process, if there is one. A later request starts another."""
        with self._lock:
            self._process.close()
