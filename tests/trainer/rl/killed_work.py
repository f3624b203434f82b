"""A run that is killed at a place, in a process of its own: `python -m tests.trainer.rl.killed_work
FOLDER`. For every place in `PLACES` a child begins a run, kills itself there with SIGKILL in the
last iteration or behind it, and another child takes the run to its end."""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

# what children would each import for themselves
import matplotlib.figure  # noqa: F401
import torch.utils.tensorboard  # noqa: F401

from tests.trainer.rl.small_rl import rl_config
from trainer.rl import run as rl_run
from trainer.rl import testing
from trainer.rl.loop import reinforce
from trainer.rl.rollouts import store
from trainer.rl.settings import RLConfig


class KilledAt(NamedTuple):
    where: Any
    """What has the function that is called there."""
    what: str
    call: int
    """Which of its calls is the last thing that happens."""
    done: bool
    """Whether the call is done by then."""


PLACES = {
    "playing": KilledAt(store.RolloutStore, "write_part", 3, done=True),
    "played": KilledAt(rl_run, "write_samples", 2, done=False),
    "learning": KilledAt(rl_run, "learn", 2, done=True),
    "sending": KilledAt(rl_run.RLRun, "_send", 2, done=True),
    "validating": KilledAt(testing, "write_samples", 2, done=False),
    "measured": KilledAt(rl_run, "save_checkpoint", 3, done=False),
    "keeping": KilledAt(rl_run, "save_checkpoint", 3, done=True),
    "exporting": KilledAt(rl_run, "export_whole", 1, done=False),
}


def config_of(folder: Path, out: str) -> RLConfig:
    choice = {"tasks": 2, "band": {"k": 2}, "rest": 2}
    test = {"every": 2, "tasks": 2, "heldout": False}
    return rl_config(folder, out, iterations=2, choice=choice, test=test)


def main(folder: Path) -> None:
    config_of(folder, "none")  # makes what the children share
    _child(lambda: reinforce(config_of(folder, "whole")))
    for name in PLACES:
        status = _child(lambda name=name: _killed(folder, name))
        if not os.WIFSIGNALED(status):
            raise SystemExit(f"{name}: nothing was killed, status {status}")
        if status := _child(lambda name=name: reinforce(config_of(folder, name))):
            raise SystemExit(f"{name}: the run did not go on, status {status}")


def _killed(folder: Path, name: str) -> None:
    place = PLACES[name]
    real = getattr(place.where, place.what)
    calls = 0

    def watched(*args: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == place.call and not place.done:
            os.kill(os.getpid(), signal.SIGKILL)
        made = real(*args, **named)
        if calls == place.call:
            os.kill(os.getpid(), signal.SIGKILL)
        return made

    setattr(place.where, place.what, watched)
    reinforce(config_of(folder, name))


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
