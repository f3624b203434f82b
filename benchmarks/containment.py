"""The attempts to get out of a sandbox, played here: python -m benchmarks.containment [FILE]

Prints the table, and writes it to FILE if one is given (docs/containment.md). Run as root, which
alone can make all controls. Exit code 1 if an attempt was not contained, or its control not won.
"""

import os
import sys
from collections import Counter
from pathlib import Path

from sandboxes.lending.leases import available
from tests.sandboxes.attacks.attempt import Attempt, impossible, verdicts
from tests.sandboxes.attacks.suite import ATTEMPTS

HEAD = """# Containment

What a hostile program in a sandbox tries, and what becomes of it. Every attempt is a test
(`tests/sandboxes/attacks`) and is played twice. In the **control** the sandbox lacks the smallest
set of walls that lets the payload through, or has one limit raised to a value that is still safe;
or the pool, the snapshot, the grader or the proxy leaves out the one step that is named. There it
must succeed, so the payload works. With **all walls** it must say in its own words that it was
refused. Nothing hostile runs outside a sandbox.

Written by `python -m benchmarks.containment docs/containment.md`, as {user}, on Linux {kernel}.
"""

NOT_CONTAINED = """
## What is not contained

- A program can end or stop the agent of its own sandbox, since both run as the same user. The host
  then has a lost sandbox (a `TransientError`, after at most 20 s), never a result.
- Bugs of the kernel: all sandboxes share it.
- What a sandbox learns from files that all of them share read-only (`/usr`, the interpreter): who
  opens them and when (inotify, advisory locks, the page cache), and so a slow way for two sandboxes
  that both want to talk.
- Where the host keeps what it binds: `/proc/self/mountinfo` names the source folders.
- A host whose `kernel.core_pattern` is a pipe runs that program for a crash in a sandbox too.
- Without control groups, limits are those of single processes (`synth sandbox doctor` says so).
"""


def row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def table(attempts: list[Attempt], seen: dict[str, tuple[str, str]]) -> str:
    lines = [
        row("attempt", "group", "contained by", "control without", "seen: control", "all walls"),
        row(*["---"] * 6),
    ]
    for attempt in attempts:
        control, contained = seen[attempt.name]
        cells = attempt.contained_by, ", ".join(attempt.lacking), control.split()[0], contained
        lines.append(row(attempt.name, attempt.group, *cells))
    return "".join(lines)


def refused_anyway(attempts: list[Attempt], seen: dict[str, tuple[str, str]]) -> str:
    lines = [row("attempt", "group", "why", "seen"), row(*["---"] * 4)]
    lines += [row(a.name, a.group, str(a.kernel), seen[a.name][1]) for a in attempts]
    return "".join(lines)


def main(file: str | None = None) -> int:
    if (reason := available()) is not None:
        sys.exit(f"no sandbox can run here: {reason}")
    seen: dict[str, tuple[str, str]] = {}
    for attempt in ATTEMPTS:
        why = impossible(attempt)
        seen[attempt.name] = verdicts(attempt) if why is None else (f"skipped: {why}", "")
        print(f"{attempt.group}: {attempt.name}: {seen[attempt.name][1]}", file=sys.stderr)
    wrong = [
        attempt.name
        for attempt in ATTEMPTS
        if impossible(attempt) is None
        and not (
            seen[attempt.name][1] == f"refused {attempt.refusal}"
            and (attempt.kernel or seen[attempt.name][0].startswith("won"))
        )
    ]
    controlled = [a for a in ATTEMPTS if a.kernel is None]
    user = "root" if os.geteuid() == 0 else "an ordinary user"
    groups = ", ".join(f"{n} {name}" for name, n in Counter(a.group for a in controlled).items())
    text = HEAD.format(user=user, kernel=os.uname().release.partition("-")[0])
    text += f"\n{len(controlled)} attempts with a control ({groups}); not as expected: "
    text += f"{', '.join(wrong) or 'none'}.\n\n" + table(controlled, seen)
    text += "\n## Refused with or without the walls\n\nNo wall of ours can be taken away to let "
    text += "these through; they are played all the same.\n\n"
    text += refused_anyway([a for a in ATTEMPTS if a.kernel is not None], seen) + NOT_CONTAINED
    if file is not None:
        Path(file).write_text(text, encoding="utf-8")
    print(text)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
