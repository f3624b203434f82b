"""The figures of two callers side by side: root, and a normal user in a process of its own.

Root starts that process under an id that no system gives away. Where what it runs lies in folders
that are closed to others (a Python below /root, say), it sees them by a mount of its own: nothing
is copied and nobody's permissions change.
"""

import argparse
import asyncio
import json
import os
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from records.errors import SynthError
from sandboxes.bench.measure import Figure, figures
from sandboxes.core.template import BASE_ENV
from sandboxes.lending.leases import available

USER = 29_999
"""Id of the normal user: neither people, services nor sandboxes have it."""

ROOT = Path(__file__).resolve().parents[2]
"""Where the packages of this project are."""


class TwoCallers(NamedTuple):
    """A figure of both callers."""

    name: str
    root: float
    root_p95: float | None
    user: float
    user_p95: float | None
    unit: str
    n: int
    aim: str


async def both(*, repeats: int, live: int) -> list[TwoCallers]:
    """The figures of root, who calls this, and then of a normal user. SynthError where that has no
    sandboxes here."""
    as_root = await figures(repeats=repeats, live=live)
    measured = await asyncio.to_thread(of_normal_user, repeats=repeats, live=live)
    as_user = {figure.name: figure for figure in measured}
    return [
        TwoCallers(name, value, p95, as_user[name].value, as_user[name].p95, unit, n, aim)
        for name, value, p95, unit, n, aim in as_root
    ]


def of_normal_user(*, repeats: int, live: int) -> list[Figure]:
    """The figures of a process of that user."""
    module = [sys.executable, "-m", __name__, "--repeats", str(repeats), "--live", str(live)]
    done = subprocess.run(
        user_command(module, this_python()),
        env=BASE_ENV | {"PYTHONPATH": str(ROOT)}, cwd="/", capture_output=True, check=False,
    )  # fmt: skip
    if done.returncode:
        why = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise SynthError(f"the figures of a normal user cannot be measured: {''.join(why)}")
    return [Figure(**figure) for figure in json.loads(done.stdout)]


def this_python() -> set[Path]:
    """Folders with all that runs here."""
    return {Path(sys.base_prefix), Path(sys.prefix), Path(sysconfig.get_path("purelib")), ROOT}


def user_command(command: Sequence[str], needed: Iterable[Path]) -> list[str]:
    """argv that becomes the command as the normal user, who sees the needed folders and no other
    that is closed to it."""
    shown = [path for path in sorted(needed) if closed(path)]
    covered = sorted({closed(path)[0] for path in shown})
    drop = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", *command]
    if not shown:
        return drop
    lines = ["set -e", "umask 022", "kept=$(mktemp -d)", 'mount -t tmpfs none "$kept"']
    for number, path in enumerate(shown):
        lines += [f'mkdir "$kept/{number}"', f'mount --bind {quoted(path)} "$kept/{number}"']
    # over the topmost closed folders lie empty open ones, and in them only what is needed
    lines += [f"mount -t tmpfs -o mode=755 none {quoted(folder)}" for folder in covered]
    for number, path in enumerate(shown):
        lines += [f"mkdir -p {quoted(path)}", f'mount --bind "$kept/{number}" {quoted(path)}']
    script = "\n".join([*lines, 'umount -l "$kept"', 'rmdir "$kept"', f"exec {shlex.join(drop)}"])
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", script]


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
