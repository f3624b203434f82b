"""The page that tells what came out: markdown, by the driver alone."""

from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

from benchmarks.ablations.cells import Done, Results
from benchmarks.ablations.plots import write_page
from benchmarks.measured import machine
from records.files import write_atomic

HEAD = """# Ablations on a CPU

Written by `make ablations`. Models of about a million parameters in K2's form, trained for minutes:
this shows that the parts do what they are for at this size and nothing about large models. {seeds}

    {command}

| | |
|---|---|
| commit | {commits} |
| hardware | {hardware}, no GPU, {jobs} of one thread each at a time |
| load when a start began | {loads} |
| time | {minutes:.0f} min of runs, {wall:.0f} min of wall time for those of the last start |
"""


def write_report(
    path: Path,
    found: Mapping[str, Mapping[int, Done]],
    ablations: Mapping[str, ModuleType],
    results: Results,
    *,
    command: str,
    jobs: int,
    wall_s: float,
) -> None:
    cells = [
        cell for seeds in found.values() for done in seeds.values() for cell, _ in done.values()
    ]
    loads = results.loads(cells)
    seeds = max(len(own) for own in found.values())
    head = HEAD.format(
        seeds="One seed: a difference of the size of noise cannot be told." if seeds == 1 else "",
        command=command,
        commits=", ".join(results.commits(cells)),
        hardware=machine()["hardware"],
        jobs=f"{jobs} processes",
        loads=f"{min(loads):g} to {max(loads):g}",
        minutes=sum(map(results.seconds, cells)) / 60,
        wall=wall_s / 60,
    )
    parts = [head]
    for name, own in found.items():
        module = ablations[name]
        parts += [f"## {module.TITLE}", module.section(own), _times(own, results)]
    figures = [figure for name, own in found.items() for figure in ablations[name].figures(own)]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_page(path.with_suffix(".html"), "Ablations on a CPU", figures)
    write_atomic(path, ("\n\n".join(part.strip() for part in parts) + "\n").encode())


def _times(seeds: Mapping[int, Done], results: Results) -> str:
    took = [results.seconds(cell) for done in seeds.values() for cell, _ in done.values()]
    each = f"{min(took):.0f} to {max(took):.0f} s"
    return f"{len(took)} runs of {each} each, {sum(took) / 60:.0f} min in all."
