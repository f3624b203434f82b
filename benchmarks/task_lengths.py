"""How many tasks of each length the worlds give, and what they are like.

    python -m benchmarks.task_lengths [DOMAIN ...] [--sample 30] [--drafts 2] [--rows N] [--show]

Domains by name or pattern, as `synth domain list` shows them; by default a sample of all that have
tools. For each band of calls so many tasks are asked for in each domain, of an agent that has all
of its tools and with the shares of variants (but for `no_tool`) and
forms of the settings. Prints how many were proved,
what their plans are like (medians, and the ninth decile of the seconds), how the plans were found,
and why the others were dropped. With `--show`, the first task of the longest band.
"""

import argparse
import json
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from statistics import median, quantiles
from typing import NamedTuple

from records.digest import digest
from synth.tasks.composing import DomainTasks
from synth.tasks.forms.forms import FormShares
from synth.tasks.goals.goals import Draft, Proof
from synth.tasks.goals.variants import VariantShares
from synth.tasks.lengths import Complexity
from synth.tasks.proof.proving import UnprovedError
from tool_specs.domains.domain import Domain, load_domain
from tool_specs.domains.taxonomy import files_named
from tool_specs.growth.grown_seed import GrownSeed

BANDS = ("1-3", "4-8", "9-15", "16-40")
SHARES = Complexity(0.3, 0.4, 0.3)
VARIANTS = VariantShares(no_tool=0.0)
SEED = 7


class ProvedTask(NamedTuple):
    domain: str
    draft: Draft
    proof: Proof
    wall_s: float


class BandYield(NamedTuple):
    asked: int
    proved: list[ProvedTask]
    dropped: Counter[str]
    dropped_s: list[float]
    """What a task took that was dropped."""


def yield_of(band: str, domains: Sequence[Domain], drafts: int, rows: int | None) -> BandYield:
    """`rows`: of the state that tasks start in; None for the seed of the domain's file."""
    grown = None if rows is None else GrownSeed(rows=rows, number=0, split="train")
    found = BandYield(len(domains) * drafts, [], Counter(), [])
    for domain in domains:
        names = list(domain.programs)
        tasks = DomainTasks(
            domain,
            names,
            variants=VARIANTS,
            forms=FormShares(),
            lengths={band: 1.0},
            grown=grown,
        )
        for i in range(drafts):
            item = digest("task_lengths", band, domain.name, i)
            begun = time.process_time()
            try:
                _, draft, proof = tasks.make(item, shares=SHARES, disclosure="mixed")
            except UnprovedError as error:
                found.dropped[error.reason] += 1
                found.dropped_s.append(time.process_time() - begun)
                continue
            wall_s = time.process_time() - begun
            found.proved.append(ProvedTask(domain.name, draft, proof, wall_s))
    return found


def line(band: str, found: BandYield) -> str:
    """A row of a Markdown table."""
    tasks = found.proved
    how = Counter(str(task.draft.proved.get("plan", "none")) for task in tasks)
    spared = sum(task.draft.proved.get("left_out", 0) for task in tasks)

    def middle(values: list[float]) -> str:
        return f"{median(values):g}" if values else "-"

    seconds = [task.wall_s for task in tasks]
    late = f"{quantiles(seconds, n=10)[-1]:.2f}" if len(seconds) > 1 else "-"
    cells = [
        band,
        f"{len(tasks)} of {found.asked}",
        middle([len(task.draft.plan) for task in tasks]),
        middle([len(task.draft.goals) for task in tasks]),
        middle([task.proof.num_distinct_tools for task in tasks]),
        middle([task.proof.longest_chain for task in tasks]),
        f"{median(seconds):.2f}" if seconds else "-",
        late,
        ", ".join(f"{name} {n}" for name, n in how.most_common()) + f"; left out {spared}",
        ", ".join(f"{reason} {n}" for reason, n in found.dropped.most_common(5)) or "0",
        f"{median(found.dropped_s):.2f}" if found.dropped_s else "-",
    ]
    return f"| {' | '.join(cells)} |"


def shown(task: ProvedTask) -> str:
    """Markdown."""
    lines = [f"### {len(task.draft.plan)} calls, of {task.domain}", ""]
    for goal in task.draft.goals:
        lines.append(f"- {goal.form}: {goal.sentence}")
        told = ", ".join(f"{f.label} {f.value} ({f.when})" for f in goal.known)
        lines.append(f"  - the user knows: {told or 'nothing'}")
        lines += [f"  - wants to hear: {asked.label}" for asked in goal.asks]
        lines += [
            f"  - `{step.tool}({json.dumps(step.arguments, ensure_ascii=False)})`"
            for step in goal.steps
        ]
    measured = json.dumps(task.proof.measured)
    proved = json.dumps(task.draft.proved, ensure_ascii=False)
    return "\n".join([*lines, f"- measured: `{measured}`", f"- proved: `{proved}`", ""])


def files_of(given: Sequence[str], sample: int) -> list[Path]:
    if given:
        return [path for name in given for path in files_named(name).values()]
    paths = sorted(files_named("*/*").values())
    return sorted(Random(SEED).sample(paths, min(sample, len(paths))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("domains", nargs="*")
    parser.add_argument("--sample", type=int, default=30, help="domains, where none is named")
    parser.add_argument("--drafts", type=int, default=2, help="tasks of each band in each domain")
    parser.add_argument("--bands", nargs="+", default=BANDS)
    parser.add_argument("--rows", type=int, help="of the states; by default the seed")
    parser.add_argument("--show", action="store_true", help="print a task of the longest band")
    args = parser.parse_args()
    worlds = [load_domain(path) for path in files_of(args.domains, args.sample)]
    worlds = [domain for domain in worlds if domain.tools]
    print(f"{len(worlds)} domains, {args.drafts} tasks of each band in each; CPU seconds")
    print(
        "| calls | proved | calls, median | goals | tools | chain | s | s, 9th decile | plan "
        "| dropped | s of a dropped one |\n|" + "---|" * 11
    )
    found = None
    for band in args.bands:
        found = yield_of(band, worlds, args.drafts, args.rows)
        print(line(band, found), flush=True)
    if args.show and found and found.proved:
        print("", shown(max(found.proved, key=lambda task: task.proof.longest_chain)), sep="\n")


if __name__ == "__main__":
    main()
