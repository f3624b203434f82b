"""A run that is killed at a place, in a process of its own: `python -m tests.trainer.rl.killed_work
FOLDER`. For every place in `PLACES` a child begins a run, kills itself there with SIGKILL in the
second iteration, and another child takes the run to its end."""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.trainer.rl.small_rl import rl_config
from trainer.rl import run as rl_run
from trainer.rl import testing
from trainer.rl.loop import reinforce
from trainer.rl.rollouts import store

PLACES: dict[str, tuple[Any, str, int]] = {
    "playing": (store.RolloutStore, "write_part", 3),
    "played": (rl_run, "write_samples", 2),
    "learning": (rl_run, "learn", 2),
    "sending": (rl_run.RLRun, "_send", 2),
    "validating": (testing, "write_samples", 2),
    "keeping": (rl_run, "save_checkpoint", 3),
    "exporting": (rl_run, "export_whole", 1),
}
"""Phase -> what is called there, and which of its calls is the last thing that happens: once
before it does anything, and once behind it."""


def main(folder: Path) -> None:
    rl_config(folder)  # makes what the children share
    _child(lambda: reinforce(rl_config(folder, "whole")))
    for name in PLACES:
        for behind in (False, True):
            out = f"{name}-{'behind' if behind else 'before'}"
            status = _child(
                lambda name=name, behind=behind, out=out: _killed(folder, out, name, behind)
            )
            if not os.WIFSIGNALED(status):
                raise SystemExit(f"{out}: nothing was killed, status {status}")
            if status := _child(lambda out=out: reinforce(rl_config(folder, out))):
                raise SystemExit(f"{out}: the run did not go on, status {status}")


def _killed(folder: Path, out: str, name: str, behind: bool) -> None:
    where, what, count = PLACES[name]
    real = getattr(where, what)
    calls = 0

    def watched(*args: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == count and not behind:
            os.kill(os.getpid(), signal.SIGKILL)
        made = real(*args, **named)
        if calls == count:
            os.kill(os.getpid(), signal.SIGKILL)
        return made

    setattr(where, what, watched)
    reinforce(rl_config(folder, out))


def _child(work: Callable[[], object]) -> int:
    """Forked before torch has computed anything here; its status."""
    if pid := os.fork():
        return os.waitpid(pid, 0)[1]
    try:
        work()
    except BaseException as error:
        sys.stderr.write(f"{error!r}\n")
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
