"""The figures of three callers side by side: root, and in processes of their own a normal user and
one that has a range of further users.

Root starts these processes under an id that no system gives away. Where what they run lies in
folders that are closed to others (a Python below /root, say), they see them by a mount of their
own, and so they see the entries of files in /etc that give a user its name and its range: nothing
is copied, nobody's permissions change, and the machine gets no account.
"""

import argparse
import asyncio
import json
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from records.errors import SynthError
from sandboxes.bench.measure import Figure, figures
from sandboxes.core.template import BASE_ENV
from sandboxes.lending.leases import available
from sandboxes.local.subordinates import TOOLS

USER = 29_999
"""Id of the normal user: neither people, services nor sandboxes have it."""

FIRST_ID, IDS = 2_000_000_000, 4_096
"""Of ranges, and how many ids each has: neither accounts, containers nor sandboxes of root's have
them."""

ROOT = Path(__file__).resolve().parents[2]
"""Where the packages of this project are."""


class ThreeCallers(NamedTuple):
    """A figure of all callers."""

    name: str
    root: float
    root_p95: float | None
    user: float
    user_p95: float | None
    ranges: float | None
    """Of the user with a range; None where no user can have one here."""
    ranges_p95: float | None
    unit: str
    n: int
    aim: str


async def all_three(*, repeats: int, live: int) -> list[ThreeCallers]:
    """The figures of root, who calls this, and then of the others. SynthError where a normal user
    has no sandboxes here."""
    as_root = await figures(repeats=repeats, live=live)
    measured = await asyncio.to_thread(of_normal_user, repeats=repeats, live=live)
    as_user = {figure.name: figure for figure in measured}
    with_range: dict[str, Figure] = {}
    if await asyncio.to_thread(no_ranges) is None:
        measured = await asyncio.to_thread(of_normal_user, repeats=repeats, live=live, ranges=True)
        with_range = {figure.name: figure for figure in measured}
    rows = []
    for name, value, p95, unit, n, aim in as_root:
        user, ranges = as_user[name], with_range.get(name)
        own = user.value, user.p95, ranges and ranges.value, ranges and ranges.p95
        rows.append(ThreeCallers(name, value, p95, *own, unit, n, aim))
    return rows


def of_normal_user(*, repeats: int, live: int, ranges: bool = False) -> list[Figure]:
    """The figures of a process of that user."""
    module = [sys.executable, "-m", __name__, "--repeats", str(repeats), "--live", str(live)]
    done = by_user(module, ranges=ranges)
    if done.returncode:
        why = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise SynthError(f"the figures of a normal user cannot be measured: {''.join(why)}")
    return [Figure(**figure) for figure in json.loads(done.stdout)]


@cache
def no_ranges() -> str | None:
    """Why root can start no user here whose sandboxes have users of a range; None where it can.
    Asked once."""
    for path in (*map(Path, ENTRIES), *(Path(tool) for tool in TOOLS)):
        if not path.exists() and shutil.which(path, path=BASE_ENV["PATH"]) is None:
            return f"{path} is not here"
    ask = "from sandboxes.local.users import apart; print(apart() or '')"
    done = by_user([sys.executable, "-c", ask], ranges=True)
    return (done.stdout + done.stderr).decode(errors="replace").strip() or None


def by_user(command: Sequence[str], *, ranges: bool) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        user_command(command, this_python(), ranges=ranges),
        env=BASE_ENV | {"PYTHONPATH": str(ROOT)}, cwd="/", capture_output=True, check=False,
    )  # fmt: skip


def this_python() -> set[Path]:
    """Folders with all that runs here."""
    return {Path(sys.base_prefix), Path(sys.prefix), Path(sysconfig.get_path("purelib")), ROOT}


def user_command(
    command: Sequence[str], needed: Iterable[Path], *, ranges: bool = False
) -> list[str]:
    """argv that becomes the command as the normal user, who sees the needed folders and no other
    that is closed to it."""
    lines = showing(needed) + (giving_ranges(USER) if ranges else [])
    return [*becoming(USER, lines), *command]


def becoming(user: int, lines: Sequence[str] = ()) -> list[str]:
    """What stands before a command to run it as that user. Before, root runs the lines of shell in
    a mount namespace that is the command's own; `$kept` is an empty folder of theirs."""
    drop = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--inh-caps=-all"]
    if not lines:
        return drop
    first = ["set -e", "umask 022", "kept=$(mktemp -d)", 'mount -t tmpfs none "$kept"']
    last = ['umount -l "$kept"', 'rmdir "$kept"', f'exec {shlex.join(drop)} "$@"']
    script = "\n".join([*first, *lines, *last])
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh"]


def showing(needed: Iterable[Path]) -> list[str]:
    """Lines of shell that show folders which are closed to others."""
    shown = [path for path in sorted(needed) if closed(path)]
    covered = sorted({closed(path)[0] for path in shown})
    lines = []
    for number, path in enumerate(shown):
        lines += [f'mkdir "$kept/{number}"', f'mount --bind {quoted(path)} "$kept/{number}"']
    # over the topmost closed folders lie empty open ones, and in them only what is needed
    lines += [f"mount -t tmpfs -o mode=755 none {quoted(folder)}" for folder in covered]
    for number, path in enumerate(shown):
        lines += [f"mkdir -p {quoted(path)}", f'mount --bind "$kept/{number}" {quoted(path)}']
    return lines


ENTRIES = {
    "/etc/passwd": "synth-{user}:x:{user}:{user}::/:/bin/sh",
    "/etc/subuid": "synth-{user}:{first}:{size}",
    "/etc/subgid": "synth-{user}:{first}:{size}",
}


def range_of(user: int) -> tuple[int, int]:
    """The first id, and how many there are, of a range that is this user's alone."""
    return FIRST_ID + IDS * (user % 30_000), IDS


def giving_ranges(user: int) -> list[str]:
    """Lines of shell that give the user a name and its range."""
    first, size = range_of(user)
    lines = []
    for path, form in ENTRIES.items():
        line, own = form.format(user=user, first=first, size=size), f'"$kept/{Path(path).name}"'
        lines += [f"cat {path} > {own}", f"echo {line} >> {own}", f"mount --bind {own} {path}"]
    return lines


def closed(path: Path) -> list[Path]:
    """Folders on the way to `path` that others may not enter, the topmost first."""
    above = [path, *path.parents][::-1]
    return [folder for folder in above if not folder.stat().st_mode & 0o001]


def quoted(path: Path) -> str:
    return shlex.quote(str(path))


def main() -> None:
    """In the process of the normal user: the figures, as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, required=True)
    parser.add_argument("--live", type=int, required=True)
    options = parser.parse_args()
    if (reason := available()) is not None:
        sys.exit(f"user {os.getuid()} can run no sandbox: {reason}")
    found = asyncio.run(figures(repeats=options.repeats, live=options.live))
    print(json.dumps([figure._asdict() for figure in found]))  # noqa: T201


if __name__ == "__main__":
    main()
