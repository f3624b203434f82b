"""An attempt to get out of a sandbox: a payload, and the walls that must be gone for it to succeed.

Each is played twice in fresh sandboxes. The control leaves out the smallest set of walls that lets
the payload through, with every other wall and cap in place, and must be won: so the payload works.
Then all walls stand, and the same payload must say in its own words that it was refused. A payload
that says nothing (no such program, a wrong line) has proved nothing and fails its test.
"""

import asyncio
import os
import platform
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence, Set
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import pytest

from sandboxes.core.python_env import base_python
from sandboxes.core.sandbox import ExecResult, Sandbox
from sandboxes.core.template import Bind, Limits, SandboxTemplate
from sandboxes.local import cgroups, seccomp
from sandboxes.local.backend import lease
from sandboxes.local.protections import NOTHING, Protection

MINIMAL_ROOT = "minimal root"
"""No switch takes this wall away: the control's template shows the folder in question."""

CAPS = Limits(timeout_s=10, memory_mb=128, processes=48, disk_mb=16, open_files=256)

AGENT = 1
"""Process id, inside, of the program that serves the host."""

NUMBERS = seccomp.MACHINES[platform.machine()].numbers
"""Of system calls, each compared with the kernel's headers by a test of the filter."""

PRELUDE = f"""
import ctypes, errno, os, socket, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)

class Refused(Exception):
    pass

def syscall(number, *arguments):
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *arguments)
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result

NUMBERS = {NUMBERS!r}
AGENT = {AGENT}
print("tried", flush=True)
"""

VERDICT = """
try:
    won = attack(*sys.argv[1:])
except OSError as error:
    print("refused", errno.errorcode.get(error.errno, error))
except Refused as error:
    print("refused", error)
else:
    print("won", won)
"""


@dataclass(frozen=True)
class Scene:
    """What is there to be attacked, made anew for each play."""

    args: tuple[str, ...] = ()
    """The payload's arguments."""
    folder: str | None = None
    """The host's folder that the control shows, or that both show if the attempt is `given` it."""
    proof: str | None = None
    """What a winner must have learnt, and a loser must not have."""
    reached: Callable[[], bool] | None = None
    """Whether the host saw the attack arrive."""
    other: Sandbox | None = None
    """A second sandbox, of another owner."""
    control: bool = False
    """Whether this is the control: its play leaves out the attempt's `guard`."""


Scenery = Callable[[Set[Protection]], AbstractAsyncContextManager[Scene]]
Play = Callable[["Attempt", Sandbox, Scene], Awaitable[str]]
OwnPlay = Callable[["Attempt", Scene], Awaitable[str]]


@asynccontextmanager
async def nothing(_without: Set[Protection]) -> AsyncIterator[Scene]:
    yield Scene()


async def run_payload(attempt: "Attempt", sandbox: Sandbox, scene: Scene) -> str:
    """Run the attempt's Python inside and return what it said last."""
    source = f"{PRELUDE}\n{attempt.payload}\n{VERDICT}"
    return said(await sandbox.exec([base_python(), "-I", "-S", "-c", source, *scene.args]))


def said(done: ExecResult) -> str:
    lines = done.stdout.decode(errors="replace").splitlines()
    if lines[:1] != ["tried"]:
        return f"unclear: {done}"
    if done.timed_out:
        return "refused its time was up"
    if done.truncated:
        return "refused output was cut"
    if lines[-1].startswith(("won", "refused")):
        return lines[-1]
    if done.out_of_memory:
        return "refused killed for memory"
    return "refused killed by SIGSYS" if done.exit_code == 128 + 31 else f"unclear: {done}"


@dataclass(frozen=True)
class Attempt:
    name: str
    group: str
    refusal: str
    """What a refused payload says: an error's name, or words."""
    mechanism: str = ""
    """What of the kernel, or of ours, the payload uses; its group where nothing closer is named."""
    payload: str = ""
    """Defines attack(*args), which returns what was won or raises OSError or Refused."""
    by: str = ""
    """The wall that refuses it, where several stand behind each other: the first of them."""
    without: frozenset[Protection] = NOTHING
    """Walls that the control leaves out."""
    shown: bool = False
    """Whether the control also shows the scene's folder."""
    given: bool = False
    """Whether the sandbox is given the scene's folder anyway, read-only."""
    limits: Limits = CAPS
    loosened: Limits | None = None
    """The control's limits: higher, and still safe."""
    scene: Scenery = nothing
    play: Play = run_payload
    own_play: OwnPlay | None = None
    """In the place of `play`, where the sandboxes are made by what is attacked: a grader, the
    proxy, a measurement of the host."""
    guard: str = ""
    """What refuses it where that is no wall of a sandbox but a step of the pool, of a snapshot or
    of a grader; the play of the control does without it."""
    as_root: bool = False
    """Whether the control can be made by root alone: for others the user namespace, which they
    cannot do without, is a wall of its own."""
    needs: cgroups.ControllerName | None = None
    """The control group without which the limit is held by other means, or not at all."""
    kernel: str | None = None
    """Why it fails without the walls too; then there is no control."""
    one_uid: str | None = None
    """Why nothing holds it where the caller has one user id alone; then it is won there."""
    alone: bool = False
    """Whether nothing else may be played meanwhile: it measures the machine, or burdens it."""

    @property
    def way(self) -> str:
        return self.mechanism or self.group

    @property
    def lacking(self) -> list[str]:
        """The control in words: what it does without."""
        words = [*(wall.value for wall in Protection if wall in self.without)]
        if self.shown:
            words.append(MINIMAL_ROOT)
        if self.guard:
            words.append(self.guard)
        if self.loosened is not None:
            for name in Limits.model_fields:
                if (value := getattr(self.loosened, name)) != getattr(self.limits, name):
                    words.append(f"{name} {getattr(self.limits, name)} -> {value}")
        return words

    @property
    def contained_by(self) -> str:
        """The wall, or the limit, that refuses it."""
        if self.by:
            return self.by
        first = self.lacking[0]
        return f"limit of {first.partition(' ')[0]}" if self.loosened is not None else first

    async def run(self, *, control: bool) -> str:
        """What came of it: "won ...", "refused ..." or "unclear ..."."""
        without = self.without if control else NOTHING
        async with self.scene(without) as scene:
            words = await self._said(replace(scene, control=control), without)
            learnt = scene.proof is None or scene.proof in words
            arrived = scene.reached is None or scene.reached()
            if words.startswith("won") and not (learnt and arrived):
                return f"unclear: claims {words}, and the host saw otherwise"
            if words.startswith("refused") and scene.reached is not None and arrived:
                return f"unclear: says {words}, and the host saw it arrive"
            return words

    async def _said(self, scene: Scene, without: Set[Protection]) -> str:
        if self.own_play is not None:
            return await self.own_play(self, scene)
        folder = scene.folder if self.given or (scene.control and self.shown) else None
        binds = () if folder is None else (Bind(source=folder, target=folder),)
        limits = self.loosened if scene.control and self.loosened else self.limits
        template = SandboxTemplate(binds=binds, limits=limits)
        async with lease(template, without=without) as sandbox:
            return await self.play(self, sandbox, scene)


PLAY_S = 60.0
"""For both plays of one attempt; a longer one has gone wrong."""


class Outcome(NamedTuple):
    control: str
    """ "won ..." where the payload works, or why there is no control."""
    contained: str
    """ "refused ..." with all walls, "" where it could not be played here."""


def play(attempt: Attempt) -> Outcome:
    return asyncio.run(play_both(attempt))


async def play_both(attempt: Attempt) -> Outcome:
    """Both plays at the same time. Where the machine lacks something, the outcome says so."""
    if attempt.needs is not None and attempt.needs not in cgroups.controllers():
        return Outcome(f"no control group for {attempt.needs} here", "")
    try:
        if attempt.as_root and not is_root():
            return Outcome(ROOT_ONLY, await attempt.run(control=False))
        async with asyncio.timeout(PLAY_S):
            control, contained = await asyncio.gather(
                attempt.run(control=True), attempt.run(control=False)
            )
    except pytest.skip.Exception as reason:
        return Outcome(str(reason), "")
    return Outcome(control, contained)


ROOT_ONLY = "only root can make its control"


def is_root() -> bool:
    return os.geteuid() == 0


def complaint(attempt: Attempt, outcome: Outcome, *, root: bool, users: bool) -> str | None:
    """What of an outcome is not as it must be; None if all is, or if it was not played. `users`:
    whether the caller gives each sandbox users of its own."""
    if not outcome.contained:
        return None
    if attempt.one_uid is not None and not users:
        return None if outcome.contained.startswith("won") else f"it is held: {outcome.contained}"
    if outcome.contained != f"refused {attempt.refusal}":
        return f"not refused with {attempt.refusal}: {outcome.contained}"
    if attempt.kernel is None and not outcome.control.startswith("won"):
        if attempt.as_root and not root:
            return None
        return f"the payload does not work: {outcome.control}"
    return None


def of_group(group: str) -> Callable[..., Attempt]:
    return partial(Attempt, group=group)


def walls(*names: str) -> frozenset[Protection]:
    return frozenset(Protection[name] for name in names)


def python(source: str, *args: str) -> Sequence[str]:
    """argv of a program inside."""
    return [base_python(), "-I", "-S", "-c", source, *args]
