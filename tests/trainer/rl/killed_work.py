"""A run that is killed at a place, in a process of its own: `python -m tests.trainer.rl.killed_work
FOLDER`. One child plays a whole run, and copies its folder as it is behind the first of its two
iterations. For every place in `PLACES` another child goes on from such a copy and kills itself
there with SIGKILL, and one more takes that run to its end."""

import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from tests.trainer.rl.small_rl import rl_config
from trainer.rl import run as rl_run
from trainer.rl import testing
from trainer.rl.loop import reinforce
from trainer.rl.rollouts import store
from trainer.rl.settings import RLConfig
from trainer.training import curves


class KilledAt(NamedTuple):
    where: Any
    """What has the function that is called there."""
    what: str
    call: int
    """Which of its calls behind the first iteration is the last thing that happens."""
    done: bool
    """Whether the call is done by then."""


PLACES = {
    "playing": KilledAt(store.RolloutStore, "write_part", 1, done=True),
    "played": KilledAt(rl_run, "write_samples", 1, done=False),
    "learning": KilledAt(rl_run, "learn", 1, done=True),
    # the first sends the weights that the run goes on from
    "sending": KilledAt(rl_run.RLRun, "_send", 2, done=True),
    "validating": KilledAt(testing, "write_samples", 1, done=False),
    "measured": KilledAt(rl_run, "save_checkpoint", 1, done=False),
    "keeping": KilledAt(rl_run, "save_checkpoint", 1, done=True),
    "exporting": KilledAt(rl_run, "export_whole", 1, done=False),
}

BEGUN = "begun"


def config_of(folder: Path, out: str) -> RLConfig:
    choice = {"tasks": 2, "band": {"k": 2}, "rest": 2}
    test = {"every": 2, "tasks": 2, "heldout": False}
    return rl_config(folder, out, iterations=2, choice=choice, test=test)


def main(folder: Path) -> None:
    curves.can_draw = lambda: False  # half a second a run
    for name in ("torch._dynamo", "torch.utils.tensorboard"):
        import_module(name)  # what children would each import for themselves
    config_of(folder, "none")  # makes what the children share
    assert _child(lambda: _whole(folder)) == 0, "the whole run failed"
    for name in PLACES:
        shutil.copytree(folder / BEGUN, folder / name)
        status = _child(lambda name=name: _killed(folder, name))
        assert os.WIFSIGNALED(status), f"{name}: nothing was killed, status {status}"
        assert os.WTERMSIG(status) == signal.SIGKILL, f"{name}: it was ended by {status}"
        status = _child(lambda name=name: _gone_on(folder, name))
        assert status == 0, f"{name}: the run did not go on, status {status}"


def _whole(folder: Path) -> None:
    """A run that nothing interrupts; what a kill behind its first iteration would leave is kept."""
    real, calls = rl_run.save_checkpoint, 0

    def watched(*args: Any, **named: Any) -> None:
        nonlocal calls
        real(*args, **named)
        calls += 1
        if calls == 2:  # the first one holds the weights that the run begins with
            shutil.copytree(folder / "whole", folder / BEGUN)

    rl_run.save_checkpoint = watched  # type: ignore[assignment]
    reinforce(config_of(folder, "whole"))


def _gone_on(folder: Path, name: str) -> None:
    done = reinforce(config_of(folder, name))
    assert done.begun >= 1, "it began anew"


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
    status = 1
    try:
        work()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
