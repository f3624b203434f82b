"""The attempts to get out of a sandbox, played here: python -m benchmarks.containment [FILE]

Prints the tables, and writes them to FILE if one is given (docs/containment.md). Run as root,
which alone can make all controls; root plays them again as a user without rights, and as one that
has a range of users. Exit code 1 if an attempt was not contained, or its control not won.
"""

import asyncio
import os
import sys
from collections import Counter
from pathlib import Path

from sandboxes.lending.leases import available
from sandboxes.local.users import apart
from tests.sandboxes.attacks.attempt import ROOT_ONLY, Attempt, Outcome, complaint, is_root
from tests.sandboxes.attacks.callers import by_a_user, play_all
from tests.sandboxes.attacks.suite import ATTEMPTS

HEAD = """# Containment

What a hostile program in a sandbox tries, and what becomes of it. Every attempt is a test
(`tests/sandboxes/attacks`) and is played twice. In the **control** the sandbox lacks the smallest
set of walls that lets the payload through, or has one limit raised to a value that is still safe;
or the pool, the snapshot, the grader or the proxy leaves out the one step that is named. There it
must succeed, so the payload works. With **all walls** it must say in its own words that it was
refused. Nothing hostile runs outside a sandbox.

All of it is played for three callers: for root; for a user without rights, who cannot give a
sandbox a user of its own; and for one that has a range in `/etc/subuid`, and can. These two have
no control groups. What a user cannot play says why: where only root can make the control the
attempt itself is played all the same. `make test` plays all of it for its own caller, and for the
others one attempt of each mechanism on each wall, or those that users of their own are to hold.

Written by `python -m benchmarks.containment docs/containment.md`, on Linux {kernel}.
"""

NOT_CONTAINED = """
## What is not contained

- Bugs of the kernel: all sandboxes share it.
- A graded test and the code under test share a process. Code written against this very runner can
  tell a copy with a turned assertion from the test (by a file, by the running code), or change a
  value in the test's own variables, and pass; so can code that reads the expected values in the
  tests (`FITTING` in `tests/sandboxes/attacks/graded/forgings.py`). No answer of a problem is
  inside.
- A program can end its own sandbox, by taking all of its memory for one: the host is told that the
  program did it (`ProgramEndedError`), never a result.
- Programs that run in one sandbox at the same time are one user. A server left running beside
  commands can read, change, end and stop them. If it stops one in the moment of its start, the
  agent waits with it, and 20 s after the command's own limit of time the host gives the sandbox up
  as ended by its program.
- A file that the host reads may be a link to `/proc/self`, which there is the agent: where its
  memory lies can be read so (by the host alone), what is in it cannot.
- What a sandbox learns from files that all of them share read-only (`/usr`, the interpreter): who
  opens them and when (inotify, advisory locks, the page cache), and so a slow way for two sandboxes
  that both want to talk.
- Which machine it is and how busy: `/proc` shows its memory, load, uptime, processors and boot id.
- Where the host keeps what it binds: `/proc/self/mountinfo` names the source folders.
- Without control groups, limits are those of single processes (`synth sandbox doctor` says so).
- Of a caller with a range, eight sandboxes together can use up the files that the caller may watch:
  the kernel counts these for whoever owns a namespace too, so each gets an eighth at most.
"""

Outcomes = dict[str, Outcome]
Played = dict[str, Outcomes]
"""Caller -> name of an attempt -> its outcome."""


def row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def cell(outcome: Outcome | None) -> str:
    """What came of it with all walls; and how the control went, unless it was won."""
    if outcome is None or not outcome.contained:
        return "not played: " + (outcome.control if outcome is not None else "no such caller here")
    if outcome.control == ROOT_ONLY:
        return f"{outcome.contained} (no control: root alone can make it)"
    return outcome.contained


CALLERS = "root", "a user", "a user with a range"


def seen_by(attempt: Attempt, played: Played) -> list[str]:
    return [cell(played[caller].get(attempt.name)) for caller in CALLERS]


def table(attempts: list[Attempt], played: Played) -> str:
    head = ["attempt", "contained by", "control without: won"]
    head += [f"{caller}: all walls" for caller in CALLERS]
    lines = [row(*head), row(*["---"] * len(head))]
    for attempt in attempts:
        lacking = ", ".join(attempt.lacking)
        lines.append(row(attempt.name, attempt.contained_by, lacking, *seen_by(attempt, played)))
    return "".join(lines)


def refused_anyway(attempts: list[Attempt], played: Played) -> str:
    head = ["attempt", "group", "why", *(f"{caller}: all walls" for caller in CALLERS)]
    lines = [row(*head), row(*["---"] * len(head))]
    for attempt in attempts:
        seen = seen_by(attempt, played)
        lines.append(row(attempt.name, attempt.group, str(attempt.kernel), *seen))
    return "".join(lines)


def not_held(attempts: list[Attempt]) -> str:
    lines = [row("attempt", "group", "why"), row(*["---"] * 3)]
    return "".join([*lines, *(row(a.name, a.group, str(a.one_uid)) for a in attempts)])


def mechanisms(attempts: list[Attempt]) -> str:
    counts = Counter(attempt.way for attempt in attempts)
    lines = [row("mechanism", "attempts"), row("---", "---")]
    return "".join([*lines, *(row(way, str(n)) for way, n in sorted(counts.items()))])


def page(played: Played, wrong: dict[str, list[str]]) -> str:
    controlled = [attempt for attempt in ATTEMPTS if attempt.kernel is None]
    anyway = [attempt for attempt in ATTEMPTS if attempt.kernel is not None]
    open_to_one = [attempt for attempt in ATTEMPTS if attempt.one_uid is not None]
    text = HEAD.format(kernel=os.uname().release.partition("-")[0])
    ways = len({attempt.way for attempt in ATTEMPTS})
    text += f"\n{len(ATTEMPTS)} attempts by {ways} mechanisms.\n\n"
    head = "caller", "played", "control won", "refused", "not as expected"
    text += row(*head) + row(*["---"] * len(head))
    for caller in CALLERS:
        found = [outcome for outcome in played[caller].values() if outcome.contained]
        won = sum(outcome.control.startswith("won") for outcome in found)
        refused = sum(outcome.contained.startswith("refused") for outcome in found)
        unexpected = ", ".join(wrong[caller]) or "none"
        text += row(caller, str(len(found)), str(won), str(refused), unexpected)
    for group in dict.fromkeys(attempt.group for attempt in controlled):
        text += f"\n## {group[0].upper()}{group[1:]}\n\n"
        text += table([a for a in controlled if a.group == group], played)
    text += "\n## Refused with or without the walls\n\nNo wall of ours can be taken away to let "
    text += "these through; they are played all the same.\n\n"
    text += refused_anyway(anyway, played)
    text += f"\n## Mechanisms\n\n{mechanisms(ATTEMPTS)}{NOT_CONTAINED}"
    if open_to_one:
        text += "\n## Not held for a caller with one user id\n\n" + not_held(open_to_one)
    return text


def main(file: str | None = None) -> int:
    if (reason := available()) is not None:
        sys.exit(f"no sandbox can run here: {reason}")
    played: Played = {caller: {} for caller in CALLERS}
    own = CALLERS[0] if is_root() else CALLERS[1 if apart() is not None else 2]
    played[own] = asyncio.run(play_all(ATTEMPTS))
    names = [attempt.name for attempt in ATTEMPTS]
    for caller in (caller for caller in CALLERS[1:] if caller != own):
        found = by_a_user(names, ranges=caller == CALLERS[2])
        if isinstance(found, str):
            print(f"{caller} is not played: {found}", file=sys.stderr)
        else:
            played[caller] = found
    wrong: dict[str, list[str]] = {caller: [] for caller in CALLERS}
    for caller, outcomes in played.items():
        for attempt in (attempt for attempt in ATTEMPTS if attempt.name in outcomes):
            words = complaint(
                attempt, outcomes[attempt.name], root=caller == "root", users=caller != "a user"
            )
            if words is not None:
                wrong[caller].append(attempt.name)
                print(f"{caller}: {attempt.group}: {attempt.name}: {words}", file=sys.stderr)
    text = page(played, wrong)
    if file is not None:
        Path(file).write_text(text, encoding="utf-8")
    print(text)
    return 1 if any(wrong.values()) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
